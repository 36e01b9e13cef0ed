import re

from dataflow_assets.report.graph import NODE_WIDTH, laid_out


def of(parents: dict[str, list[str]]):
    return laid_out(parents, dict.fromkeys(parents, (6, 3, 1)))


def test_steps_stand_below_their_parents():
    graph = of({"source": [], "one": ["source"], "two": ["one"]})
    assert [node.name for node in sorted(graph.nodes, key=lambda node: node.y)] == ["source", "one", "two"]
    assert (graph.width, len(graph.lines)) == (NODE_WIDTH, 2)


def test_branches_stand_side_by_side_and_do_not_cover_each_other():
    graph = of({"source": [], "a": ["source"], "b": ["source"], "c": ["a", "b"]})
    boxes = {node.name: (node.x, node.y) for node in graph.nodes}
    assert boxes["a"][1] == boxes["b"][1]
    assert boxes["b"][0] - boxes["a"][0] > NODE_WIDTH
    assert len(graph.lines) == 4


def test_a_line_that_passes_a_level_goes_beside_its_steps():
    parents = {"source": [], "a": ["source"], "b": ["a"], "c": ["b"], "joined": ["source", "a", "c"]}
    graph = of(parents)
    passing = [found for line in graph.lines for found in re.findall(r" ([0-9.]+) ([0-9.]+)V", line)]
    assert len(passing) == 5
    for x, y in passing:
        beside = [node for node in graph.nodes if node.y == float(y)]
        assert beside and not any(node.x < float(x) < node.x + NODE_WIDTH for node in beside)


def test_a_bar_divides_the_rows_that_came_in():
    bar = of({"source": []}).nodes[0].bar
    assert [(part.kind, round(part.width / 276, 2)) for part in bar] == [
        ("kept", 0.6),
        ("rejected", 0.3),
        ("failed", 0.1),
    ]


def test_a_single_row_in_a_million_is_seen():
    bar = laid_out({"source": []}, {"source": (999_999, 0, 1)}).nodes[0].bar
    assert bar[1].width == 2 and bar[1].x + bar[1].width <= 276


def test_a_long_name_is_shortened():
    assert len(of({"x" * 64: []}).nodes[0].short) == 30


def test_sixty_steps_and_fifty_branches_have_room():
    chain = {"s0": [], **{f"s{number}": [f"s{number - 1}"] for number in range(1, 60)}}
    fan = {"s0": [], **{f"s{number}": ["s0"] for number in range(1, 51)}}
    for graph in (of(chain), of(fan)):
        assert all(0 <= node.x <= graph.width - NODE_WIDTH for node in graph.nodes)
        assert len({(node.x, node.y) for node in graph.nodes}) == len(graph.nodes)

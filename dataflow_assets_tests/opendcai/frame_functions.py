"""Functions of a user for open-dataflow's operators that take some, and operators that misbehave."""

import pandas as pd


def with_length(frame: pd.DataFrame) -> pd.DataFrame:
    """A column with the length of each text."""
    return frame.assign(length=frame["text"].str.len())


def is_long(frame: pd.DataFrame) -> pd.Series:
    """Which texts are long."""
    return frame["text"].str.len() > 80


class Shouting:
    """Writes `text` in capitals; raises on a text with a question mark."""

    def __init__(self, mark: str = "!") -> None:
        self.mark = mark

    def run(self, storage, input_key: str = "text"):
        """Reads and writes."""
        frame = storage.read("dataframe")
        if frame[input_key].str.contains("?", regex=False).any():
            raise ValueError("a question")
        frame[input_key] = frame[input_key].str.upper() + self.mark
        storage.write(frame)


class Backwards:
    """Writes the rows in the opposite order, and nothing else."""

    def run(self, storage):
        """Reads and writes."""
        storage.write(storage.read("dataframe").iloc[::-1])


class Words:
    """A row for each word, made anew, so that nothing but the word is left."""

    def run(self, storage, input_key: str = "text", output_key: str = "word"):
        """Reads and writes."""
        rows = storage.read("dict")
        storage.write([{output_key: word} for row in rows for word in row[input_key].split()])


class Nothing:
    """Reads, and writes nothing."""

    def run(self, storage):
        """Reads."""
        storage.read("dataframe")


class Inventing:
    """Gives a row an id that it has not."""

    def run(self, storage):
        """Reads and writes."""
        storage.write(storage.read("dataframe").assign(row_id="x:1"))


class Holes:
    """Touches each second row of a column of integers, whose other values pandas makes floats of."""

    def run(self, storage, input_key: str = "n"):
        """Reads and writes."""
        frame = storage.read("dataframe")
        frame[input_key] = frame[input_key].where(frame.index % 2 == 0, 5)
        storage.write(frame.reset_index(drop=True).astype({input_key: "float64"}))


class Nested:
    """Adds to a nested value in place."""

    def run(self, storage, input_key: str = "tags"):
        """Reads and writes."""
        frame = storage.read("dataframe")
        for value in frame[input_key]:
            if isinstance(value, list):
                value.append("new")
        storage.write(frame)


class Swallowing:
    """Asks a model, and goes on with an empty text whatever happens, as many operators do."""

    def __init__(self, llm_serving) -> None:
        self.llm_serving = llm_serving

    def run(self, storage, input_key: str = "text", output_key: str = "answer"):
        """Reads, asks and writes."""
        frame = storage.read("dataframe")
        try:
            answers = self.llm_serving.generate_from_input(frame[input_key].tolist(), "")
        except Exception:  # noqa: BLE001
            answers = [""] * len(frame)
        frame[output_key] = answers
        storage.write(frame)


class Remade:
    """Makes the DataFrame anew from dicts, so that pandas guesses the types of its columns."""

    def run(self, storage):
        """Reads and writes."""
        storage.write(pd.DataFrame(storage.read("dict")))


class Forgetful:
    """Forgets each number."""

    def run(self, storage):
        """Reads and writes."""
        storage.write(storage.read("dataframe").assign(n=float("nan")))

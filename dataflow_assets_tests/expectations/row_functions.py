"""Row functions of the pipelines that rules are tested with."""


def upper_share(row: dict) -> float | None:
    """An own measure: the share of letters that are capital."""
    text = row.get("text")
    letters = [letter for letter in text if letter.isalpha()] if isinstance(text, str) else []
    return sum(map(str.isupper, letters)) / len(letters) if letters else None


def doubled_from_200(row: dict) -> dict:
    """Makes the texts from the row 200 on three times as long."""
    return {"text": row["text"] * (3 if row["number"] >= 200 else 1)}


def in_chinese(row: dict) -> dict:
    """Puts a short Chinese text in the place of each."""
    return {"text": "什么是数据"}

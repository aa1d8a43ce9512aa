"""Which words are paths of data, and not names.

>>> is_path("people.csv"), is_path("digits")
(True, False)
"""

from pathlib import Path

SUFFIXES = (".npz", ".csv", ".parquet")
FORMS = ".npz, .csv or .parquet file, or of a folder with IDX files"


def is_path(word: str) -> bool:
    """Whether a word looks like the path of a file, and not like the name of a dataset."""
    path = Path(word)
    return path.suffix.lower() in SUFFIXES or len(path.parts) > 1 or path.is_file()


def is_folder(word: str) -> bool:
    """Whether a word is a folder, and no table in several files, as of `.parquet` there are."""
    return Path(word).is_dir() and Path(word).suffix.lower() not in SUFFIXES

"""Types of the helper."""

from contextlib import AbstractContextManager
from typing import TypeVar

_T = TypeVar("_T")

class Operation:
    """A named operation: its calls have keys by their steps, else by their order."""

    def __init__(self, name: str, attempt: int) -> None: ...
    def step(self, name: str) -> AbstractContextManager[Operation]:
        """Names the one call that is made in here."""

def keyed(base: _T, *, namespace: str) -> _T:
    """A transport of httpx or httpx2, synchronous or not, with a key for every chat completion that has none.

    The namespace tells this program's operations from others' of its API key.
    """

def operation(name: str, attempt: int = 1) -> AbstractContextManager[Operation]:
    """Names the operation of the calls in here. Another attempt is another, paid run."""

def operation_key(namespace: str, name: str, attempt: int, step: str) -> str:
    """The key of one call of a named operation: the same in every process and language."""

"""The exceptions of lamina. Each has one line of text, which says what was found, where, and what was wanted."""

from typing import ClassVar


class Error(RuntimeError):
    """Base of all errors of lamina. `code` is the name of the C++ library's code."""

    code: ClassVar[str] = "internal"
    _question: int | None = None

    @property
    def question(self) -> int | None:
        """The number of the question in the FAQ of OpenVINO's Model Optimizer; None for errors that have none there."""
        return self._question


class BadFile(Error):
    """A model or data file is missing, damaged or not what it claims to be."""

    code = "bad_file"


class BadInput(Error, ValueError):
    """An array, its name, type, shape or memory is not what was wanted."""

    code = "bad_input"


class BadOption(Error, ValueError):
    """An option's name is not known, or its value is not accepted."""

    code = "bad_option"


class Unsupported(Error, NotImplementedError):
    """The model has operators that lamina does not have, or a compiled model is of another version."""

    code = "unsupported"


class BadCall(Error):
    """The object cannot do this now: nothing has run yet, for instance."""

    code = "bad_call"


class OutOfMemory(Error, MemoryError):
    """Memory could not be allocated; the objects concerned stay as they were."""

    code = "out_of_memory"


class Busy(Error):
    """An inference of the request is under way, or the call would wait for itself."""

    code = "busy"


class Canceled(Error):
    """The inference was canceled, or fork, exit or shutdown() ended it."""

    code = "canceled"


class Timeout(Canceled, TimeoutError):
    """The inference was canceled because it took more time than the call allowed."""


class Extension(Error):
    """A library of custom layers has failed; the text names it and has its message."""

    code = "extension"


class OverLimit(Error):
    """The model, or its work, is beyond a limit that was set; the text names the limit's key."""

    code = "over_limit"


class Internal(Error):
    """An internal error of lamina: a bug. Please report it."""

    code = "internal"


BY_CODE: dict[str, type[Error]] = {
    kind.code: kind
    for kind in (
        BadFile,
        BadInput,
        BadOption,
        Unsupported,
        BadCall,
        OutOfMemory,
        Busy,
        Canceled,
        Extension,
        OverLimit,
        Internal,
    )
}

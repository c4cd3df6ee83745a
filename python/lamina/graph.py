"""Drawings of models."""


class Drawing(str):
    """The text of a drawing, as SVG, HTML or DOT. A notebook shows SVG and HTML as pictures."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        """What a notebook shows; None for DOT, of which it shows the text."""
        start = self.find("<svg")
        if start < 0:
            return None
        if not self.startswith("<!DOCTYPE html>"):
            return self[start:]
        # A page has styles and scripts for the whole of it: it gets a frame of its own.
        import html

        return f'<iframe style="width:100%;height:600px;border:0" srcdoc="{html.escape(self)}"></iframe>'

"""How well each model of the policies predicts, beside what is trivial and what is modern, on data held out.

`python -m boathouse_lab.models` writes docs/models.md.
"""

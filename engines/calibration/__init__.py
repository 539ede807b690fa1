"""Step times of a real engine on the machine at hand, as a preset for `sim`.

Loads of known shape run on the engine (`loads.py`) while each step's work and time are
taken down (`recording.py`); a line through them (`fitting.py`) is written as a preset
(`writing.py`). numpy does the fitting, and every engine brings it: it is imported when
something is fitted.
"""

"""Libraries that tell their makers how they are used are kept from it: nothing about a collection leaves the machine by itself.

onnxruntime (since 1.32, on every system) makes a number for the machine, keeps it in the user's cache folder and sends events to
its maker; huggingface_hub tells which library asks. Who wants that sets the variable to 0.
"""

from __future__ import annotations

import os

QUIET = ("ORT_DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY")


def keep_quiet() -> None:
    """To be called before such a library is imported."""
    for name in QUIET:
        os.environ.setdefault(name, "1")

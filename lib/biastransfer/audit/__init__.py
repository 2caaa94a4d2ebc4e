"""Audit one network, or one before and after finetuning, on pictures of one's own: one HTML, one JSON."""

from biastransfer.audit.answers import numbers
from biastransfer.audit.auditing import Audit, audit
from biastransfer.audit.page import download_link

__all__ = ["Audit", "audit", "download_link", "numbers"]

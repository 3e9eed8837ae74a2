"""The one place that changes the disk: files and directories of results, captures, pages and templates.

Everything is written beside its place, synced and renamed, so that a kill, an error or a full disk at any moment leaves
what was there, or what was to be there, and never a mixture. A place is locked while a command writes it.

`disk` has the steps, `names` the hidden names beside a place, `locks` who writes, `files` and `directories` what is
written, `reading` how it is read.
"""

from penstock.store.directories import Directory, clear, clear_left, remove, replacing, settle
from penstock.store.files import Content, adopt, create, receiving, tidy, write
from penstock.store.locks import HeldError, held, parents
from penstock.store.names import StoreError, file_name, is_beside, own_file
from penstock.store.reading import as_written, dump, newer, parsed, read, read_json, read_text, rows, sha256, text
from penstock.store.sets import finish, together

__all__ = [
    "Content",
    "Directory",
    "HeldError",
    "StoreError",
    "adopt",
    "as_written",
    "clear",
    "clear_left",
    "create",
    "dump",
    "file_name",
    "finish",
    "held",
    "is_beside",
    "newer",
    "own_file",
    "parents",
    "parsed",
    "read",
    "read_json",
    "read_text",
    "receiving",
    "remove",
    "replacing",
    "rows",
    "settle",
    "sha256",
    "text",
    "tidy",
    "together",
    "write",
]

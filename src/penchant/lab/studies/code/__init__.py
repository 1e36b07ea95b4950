"""The version of the code behind a cell: what it calls, what it reads, which libraries."""

"""The commands on a terminal of 80 columns: one line a claim, a bar that leaves nothing behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from rich.cells import cell_len

from child_processes import PATH
from penchant.lab import Verdicts, all_claims, papers
from penchant.lab.evidence.verdict_json import dumps
from penchant.lab.record import recorded

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="opens a POSIX terminal")
CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
LITTLE = """
import sys
import little_papers
import penchant.cli

if __name__ == "__main__":
    sys.modules["penchant.cli.verify"].all_claims = lambda: little_papers.library
    penchant.cli.app(prog_name="penchant")
"""


def on_terminal(*words, columns=80, folder=None):
    """What a command writes to a terminal: the text of its output, and all of its messages."""
    import fcntl
    import pty
    import struct
    import termios

    texts = {}
    ends = {name: pty.openpty() for name in ("stdout", "stderr")}
    for _, inner in ends.values():
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))

    def read(name, outer):
        parts = []
        with os.fdopen(outer, "rb", buffering=0) as stream:
            try:
                while part := stream.read(65536):
                    parts.append(part)
            except OSError:  # the other end is closed
                pass
        texts[name] = b"".join(parts).decode()

    env = {**os.environ, "TERM": "xterm", "PYTHONPATH": PATH}
    for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
        env.pop(name, None)
    streams = {name: inner for name, (_, inner) in ends.items()}
    process = subprocess.Popen([sys.executable, *words], **streams, cwd=folder, env=env)
    readers = [
        threading.Thread(target=read, args=(name, outer)) for name, (outer, _) in ends.items()
    ]
    for inner in streams.values():
        os.close(inner)
    for reader in readers:
        reader.start()
    process.wait(timeout=120)
    for reader in readers:
        reader.join()
    return CODES.sub("", texts["stdout"]).replace("\r", ""), texts["stderr"]


def test_all_claims_fit_140_lines_below_a_heading_for_each_paper(tmp_path):
    records = recorded(all_claims().ids)
    verdicts = Verdicts(tuple(record.verdict() for record in records.values()))
    assert len(verdicts) == len(all_claims().ids)  # each claim is on record
    (tmp_path / "verdicts.json").write_text(dumps(verdicts), encoding="utf-8")
    printed, _ = on_terminal("-m", "penchant", "show", "verdicts.json", folder=tmp_path)
    lines = printed.splitlines()
    assert len(lines) <= 140 - 4  # verify adds a legend of two lines, kept seeds and the report
    claim = re.compile(r" [✓†✎✗?] (\S+-\S+)")
    shown = [claim.findall(line) for line in lines]
    assert sorted(id for ids in shown for id in ids) == sorted(all_claims().ids)
    assert max(cell_len(line) for line, ids in zip(lines, shown, strict=True) if ids) <= 80
    alone = [ids[0] for ids in shown if len(ids) == 1]
    for verdict in verdicts:
        plain = verdict.status == "holds" and verdict.scope == "as printed"
        assert plain or verdict.id in alone
    for paper in papers():
        assert sum(paper.title[:20] in line for line in lines) == 1


def test_verify_leaves_a_line_a_claim_and_five_lines_of_summary(tmp_path):
    script = tmp_path / "run.py"
    script.write_text(LITTLE)
    words = (str(script), "verify", "A", "--jobs", "1")
    printed, messages = on_terminal(*words, folder=tmp_path)
    lines = printed.splitlines()
    assert len(lines) <= 1 + 2 + 5
    assert [line.split()[1] for line in lines[1:3]] == ["A-MEAN", "A-SUM"]
    assert lines[-1].startswith("report: ")
    assert "A-MEAN ✎" in messages  # the bar, which is taken away again
    assert messages.count("\n") < 5
    assert (tmp_path / "penchant-report").is_dir()


def test_the_list_has_a_heading_for_each_paper_and_one_line_for_each_claim():
    lines = on_terminal("-m", "penchant", "list", "experiments", folder=Path("/"))[0].splitlines()
    assert len(lines) == len(all_claims().ids) + len(papers())
    assert max(map(cell_len, lines)) <= 80
    assert lines[0].startswith("W  Woodworth et al. 2020")

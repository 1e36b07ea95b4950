"""Build the site of the docs: `python docs/website [FOLDER [REPORT]]`; FOLDER is site/.

It needs the extra `site` and no network. REPORT is the folder that `penchant verify` wrote,
penchant-report/ unless another is named: its verdicts give the pages of the papers their pictures
and corrections, and without it these pages say so. Warnings of Sphinx are errors.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # runpy has not put it there

from assemble import HERE, ROOT, assemble
from llms import llms


def main(folder: Path, report: Path) -> int:
    """The exit code of Sphinx, which has built the site in `folder`."""
    from sphinx.cmd.build import build_main

    source = assemble(folder / "source", report)
    flags = ["-W", "--keep-going", "-q", "-b", "html", "-d", str(folder / "doctrees")]
    code = build_main([*flags, "-c", str(HERE), str(source), str(folder / "html")])
    if not code:
        (folder / "html" / "llms.txt").write_text(llms(source), encoding="utf-8")
        print(f"open {folder / 'html' / 'index.html'}")
    return code


if __name__ == "__main__":
    given = [Path(name) for name in sys.argv[1:]]
    places = [*given, *(ROOT / "site", ROOT / "penchant-report")[len(given) :]]
    raise SystemExit(main(*places[:2]))

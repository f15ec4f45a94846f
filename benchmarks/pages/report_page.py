"""The tables and curves of a report as a page of the documentation, without the pictures of the scenes.

primaldepth report --data DATA --out DIR
python -m benchmarks.pages.report_page DIR docs
"""

import argparse
import re
import shutil
from pathlib import Path

LEFT_OUT = ("Pictures", "Support weights", "Methods")  # images of the data, and what other pages say
FIGURES = "images/report"


def page(text: str) -> str:
    """The report without the sections left out, its figures looked for in the documentation's folder."""
    head, *sections = re.split(r"(?m)^(?=## )", text)
    kept = [part for part in sections if part.splitlines()[0].removeprefix("## ") not in LEFT_OUT]
    lead = "Made by `primaldepth report`; [the report](report.md) says what is in it.\n\n"
    title, rest = head.split("\n\n", 1)
    return "".join([title, "\n\n", lead, rest, *kept]).replace("(figures/", f"({FIGURES}/").rstrip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path)
    parser.add_argument("docs", type=Path)
    arguments = parser.parse_args()
    text = page((arguments.report / "report.md").read_text())
    (arguments.docs / "results.md").write_text(text)
    folder = arguments.docs / FIGURES
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in re.findall(rf"\({FIGURES}/([\w.-]+)\)", text):
        shutil.copy(arguments.report / "figures" / name, folder / name)


if __name__ == "__main__":
    main()

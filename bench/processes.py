"""What running processes use: CPU time and memory, from /proc."""

import os
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True)
class Used:
    """Of one process. `pss_mib`: its own memory and its share of what is shared."""

    pid: int
    parent: int
    cpu_seconds: float
    pss_mib: float


def of_group(group: int) -> list[Used]:
    """The processes of a process group without its leader, the guard that started them; parents first."""
    found = []
    for path in Path("/proc").iterdir():
        if not path.name.isdigit() or int(path.name) == group:
            continue
        try:
            fields = (path / "stat").read_text().rpartition(")")[2].split()
            if int(fields[2]) == group:
                found.append(_used(path, fields))
        except (FileNotFoundError, ProcessLookupError):
            continue  # ended while we looked
    return sorted(found, key=lambda used: used.pid)


def of_process(pid: int) -> Used:
    path = Path("/proc") / str(pid)
    return _used(path, (path / "stat").read_text().rpartition(")")[2].split())


def cpu_seconds(group: int) -> float:
    return sum(used.cpu_seconds for used in of_group(group))


def _used(path: Path, fields: list[str]) -> Used:
    rollup = (path / "smaps_rollup").read_text()
    kib = next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return Used(
        pid=int(path.name),
        parent=int(fields[1]),
        cpu_seconds=(int(fields[11]) + int(fields[12])) / TICKS,
        pss_mib=kib / 1024,
    )

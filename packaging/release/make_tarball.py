#!/usr/bin/env python3
"""Packs the program for those who do not use the Debian package.

  make_tarball.py --binary build/release/cli/haulout --version 0.1.0 --arch amd64 --output DIRECTORY [--completions-by PROGRAM]

Writes haulout_VERSION_linux_ARCH.tar.gz with the program, its license, completions for bash, zsh and fish, and the man pages.
Prints its path. The same files make the same archive: entries are sorted, belong to root, and have the time SOURCE_DATE_EPOCH
(default 0). There are no links in it, because krew unpacks none. PROGRAM is the same program for this machine, if the binary is
for another one: it writes the completions.
"""
import argparse
import gzip
import io
import os
import pathlib
import subprocess
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPLETIONS = {"bash": "haulout.bash", "zsh": "_haulout", "fish": "haulout.fish"}


def archive(files, epoch):
    """Returns the bytes of a .tar.gz. files: path -> (content, mode)."""
    tar_bytes, result = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=tar_bytes, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path, (content, mode) in sorted(files.items()):
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode, entry.mtime = len(content), mode, epoch
            entry.uname = entry.gname = "root"
            tar.addfile(entry, io.BytesIO(content))
    with gzip.GzipFile(filename="", fileobj=result, mode="wb", compresslevel=9, mtime=epoch) as packed:
        packed.write(tar_bytes.getvalue())
    return result.getvalue()


def contents(binary, program):
    files = {"haulout": (binary.read_bytes(), 0o755), "LICENSE": ((ROOT / "LICENSE").read_bytes(), 0o644)}
    for shell, name in COMPLETIONS.items():
        script = subprocess.run([program, "completion", shell], check=True, capture_output=True).stdout
        files[f"completions/{name}"] = (script, 0o644)
    for page in sorted((ROOT / "packaging/man").glob("*.[18]")):
        files[f"man/man{page.suffix[1:]}/{page.name}"] = (page.read_bytes(), 0o644)
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=pathlib.Path, required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--arch", required=True)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--completions-by", type=pathlib.Path)
    options = parser.parse_args()
    binary = options.binary.resolve()
    files = contents(binary, options.completions_by.resolve() if options.completions_by else binary)
    path = options.output / f"haulout_{options.version}_linux_{options.arch}.tar.gz"
    path.write_bytes(archive(files, int(os.environ.get("SOURCE_DATE_EPOCH", "0"))))
    print(path)


if __name__ == "__main__":
    main()

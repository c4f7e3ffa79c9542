#!/bin/sh
# Install the locked libraries and the wheel of the current folder into a new environment: install.sh FOLDER
set -eu
python3 -m venv "$1"
"$1/bin/python" -m pip install --quiet --no-cache-dir --require-hashes -r run.txt
"$1/bin/python" -m pip install --quiet --no-cache-dir --no-deps ./*.whl

#!/bin/sh
# Install each archive of dist/ in an environment of its own, and run commands of README in an empty folder there.
# try_archives.sh PYTHON [own]: with the libraries of PYTHON, or with its own.
set -eu
where='import sysconfig; print(sysconfig.get_path("purelib"))'
for archive in dist/*.whl dist/*.tar.gz; do
  fresh=build/fresh/${archive##*.}
  "$1" -m venv --without-pip "$fresh"
  if [ "${2:-}" = own ]; then
    "$1" -m pip --python "$fresh/bin/python" install --quiet "$archive"
  else
    "$1" -c "$where" > "$("$fresh/bin/python" -c "$where")/libraries.pth"
    "$1" -m pip --python "$fresh/bin/python" install --quiet --no-deps --no-build-isolation --force-reinstall "$archive"
  fi
  mkdir "$fresh/empty"
  (
    cd "$fresh/empty"
    PATH="$(cd ../bin && pwd):$PATH"
    ep-bench --version
    ep-bench run quickstart --select dataset=yacht --select 'method=*ridge' --select method=Constant
    ep-bench report results/quickstart
    ep-bench cite results/quickstart
  ) > "$fresh/output.txt"
  cat "$fresh/output.txt" | grep -c '^@' | xargs echo "$archive: used; entries to cite:"
done

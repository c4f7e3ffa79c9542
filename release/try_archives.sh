#!/bin/sh
# Install each archive of dist/ in an environment of its own, and run commands of README in an empty folder there.
# try_archives.sh PYTHON [own]: with the libraries of PYTHON, or with its own.
set -eu
where='import sysconfig; print(sysconfig.get_path("purelib"))'
inside='import ep_bench, importlib.metadata, pathlib, re, sys
package = pathlib.Path(ep_bench.__file__).parent
assert package.is_relative_to(sys.prefix) and (package / "py.typed").exists(), package
assert ep_bench.load_dataset("boston").X.shape == (506, 13)
readme = importlib.metadata.metadata("ep-bench").get_payload()
assert "](https" in readme and not {"](docs", "](results", "](configs"} & {*re.findall(r"\]\(\w+", readme)}, readme'
[ -z "$(find dist -name '*.whl' -size +20000k)" ] || { echo "the wheel is larger than 20 MB" >&2; exit 1; }
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
    python -c "$inside"
    ep-bench --version
    ep-bench run quickstart --quiet --select dataset=yacht --select 'split=[01]' --select 'method=*ridge' --select method=Constant
    ep-bench report results/quickstart
    ep-bench data verify
    ep-bench cite results/quickstart
  ) > "$fresh/output.txt"
  grep -c '^@' "$fresh/output.txt" | xargs echo "$archive: used; entries to cite:"
done

#!/bin/sh
# Verify the submissions that differ from a revision; write the text of a comment: verify_submissions.sh REVISION FILE
set -eu
mkdir -p build
status=0
: > "$2"

# Install the packages of a submission, and compute a sample of it again.
verify() {
  .venv/bin/python -c 'import json, sys; print(*json.load(open(sys.argv[1]))["requirements"], sep="\n")' \
    "$1/submission.json" > build/requirements.txt &&
    .venv/bin/python -m pip install --quiet -r build/requirements.txt &&
    .venv/bin/ep-bench submit "$1" --by "workflow of the repository"
}

for file in $(git diff --name-only --diff-filter=d "$1" HEAD -- 'results/*/submission.json'); do
  folder=$(dirname "$file")
  if verify "$folder" > build/submit.txt 2>&1; then
    cat "$folder/pull-request.md" >> "$2"
  else
    status=1
    printf '# %s: not verified\n\n```\n%s\n```\n' "$folder" "$(cat build/submit.txt)" >> "$2"
  fi
done
exit $status

#!/bin/sh
# Verify the submissions of a pull request with the code of this checkout, and write the text of a comment:
# verify_submissions.sh REVISION FILE AUTHOR. AUTHOR is how the author belongs to the repository, as GitHub states it.
set -eu
mkdir -p build
status=0
: > "$2"

changed() {
  git diff --name-only --diff-filter=d "HEAD...$1" -- "$2"
}

# Install the packages of a submission, and compute a sample of it again.
verify() {
  .venv/bin/python -c 'import json, sys; print(*json.load(open(sys.argv[1]))["requirements"], sep="\n")' \
    "$1/submission.json" > build/requirements.txt &&
    .venv/bin/python -m pip install --quiet -r build/requirements.txt &&
    .venv/bin/ep-bench submit "$1" --by "workflow of the repository"
}

stated=$(changed "$1" 'results/*/verified.json')
case "$3" in OWNER | MEMBER | COLLABORATOR) stated= ;; esac
if [ -n "$stated" ]; then
  status=1
  printf '# Refused\n\nOnly maintainers state that results are verified; remove:\n\n```\n%s\n```\n' "$stated" >> "$2"
fi
others=$(changed "$1" ':!results')
[ -z "$others" ] || printf 'Not used to verify, changed by this pull request:\n\n```\n%s\n```\n\n' "$others" >> "$2"
for file in $(changed "$1" 'results/*/submission.json'); do
  folder=$(dirname "$file")
  git checkout --quiet "$1" -- "$folder"
  if verify "$folder" > build/submit.txt 2>&1; then
    cat "$folder/pull-request.md" >> "$2"
  else
    status=1
    printf '# %s: not verified\n\n```\n%s\n```\n' "$folder" "$(cat build/submit.txt)" >> "$2"
  fi
done
exit $status

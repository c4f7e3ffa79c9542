"""``python -m ep_bench`` is ``ep-bench``."""

from ep_bench.cli import main

if __name__ == "__main__":
    main()

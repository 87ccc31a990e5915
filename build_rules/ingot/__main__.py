"""``python -m ingot``: the command. In: arguments. Out: its exit code. Not done here: anything
else."""

from ingot_build_rules.tools.cli.entry import main

if __name__ == "__main__":
    main()

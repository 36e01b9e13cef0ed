"""`python -m dataflow_assets` is the command `dataflow-assets`."""

from dataflow_assets.cli.main import main

if __name__ == "__main__":
    main()

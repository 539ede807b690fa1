"""Workloads in files: which formats there are, and how they are read and written."""

from justitia.workloads.files.dag_writing import write_dag_jsonl
from justitia.workloads.files.own import write_jsonl
from justitia.workloads.files.reading import read, read_groups

__all__ = ["read", "read_groups", "write_dag_jsonl", "write_jsonl"]

"""Files into graphs and tables: node datasets, and tables of public schema."""

from privjax.data import breast_cancer
from privjax.data import compas
from privjax.data import csv_table
from privjax.data import draws
from privjax.data import encoding
from privjax.data import lending
from privjax.data import mammographic
from privjax.data import nlsy97
from privjax.data import node_dataset
from privjax.data import planetoid
from privjax.data import registry
from privjax.data import restricted_pickle
from privjax.data import schema
from privjax.data import schema_json
from privjax.data import sources
from privjax.data import synthetic
from privjax.data import table
from privjax.data import table_registry
from privjax.data.draws import stratified_folds
from privjax.data.node_dataset import NodeDataset
from privjax.data.registry import DATASETS
from privjax.data.registry import load
from privjax.data.schema import Schema
from privjax.data.table import Table
from privjax.data.table_registry import load_table
from privjax.data.table_registry import TABLES

__all__ = (
  'DATASETS',
  'NodeDataset',
  'Schema',
  'TABLES',
  'Table',
  'breast_cancer',
  'compas',
  'csv_table',
  'draws',
  'encoding',
  'lending',
  'load',
  'load_table',
  'mammographic',
  'nlsy97',
  'node_dataset',
  'planetoid',
  'registry',
  'restricted_pickle',
  'schema',
  'schema_json',
  'sources',
  'stratified_folds',
  'synthetic',
  'table',
  'table_registry',
)

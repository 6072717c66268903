"""What an experiment is: a config, named units of work, rows and a report."""

from collections.abc import Callable, Iterable, Iterator
import dataclasses
from decimal import Decimal
from fractions import Fraction
import hashlib
import json
import pathlib
from typing import Any

Row = dict[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Experiment:
  """One table or figure group.

  Attributes:
    name: the module's name, also the folder of its results.
    config_class: frozen dataclass; every field changes the rows, none of them
      says where files lie.
    unit_names: `config -> list of names`; a unit is the smallest piece of work
      that is resumed, and depends on no other unit.
    run_unit: `(config, name, data_dir) -> rows`, the same on every call.
    inputs: `(config, data_dir) -> {name: sha256}` of data and artefacts.
    report: `(config, rows, folder) -> None` prints tables and writes
      summary.csv and figures, from rows only.
    measured: fields that a replay cannot reproduce (seconds, ratios of them).
  """

  name: str
  config_class: type
  unit_names: Callable[[Any], list[str]]
  run_unit: Callable[[Any, str, str | None], list[Row]]
  inputs: Callable[[Any, str | None], dict[str, str]]
  report: Callable[[Any, list[Row], pathlib.Path], None]
  measured: frozenset[str] = frozenset()


def run(
  experiment: Experiment, config: Any, data_dir: str | None = None
) -> Iterator[list[Row]]:
  """Yields each unit's rows, in order; pure apart from loading inputs."""
  for name in experiment.unit_names(config):
    yield experiment.run_unit(config, name, data_dir)


def config_dict(config: Any) -> dict[str, Any]:
  """Returns the config as JSON types."""
  return json.loads(json.dumps(dataclasses.asdict(config)))


def seeds(config: Any) -> tuple[int, ...]:
  """Returns a config's `seeds`, or its one `seed`."""
  return config.seeds if hasattr(config, 'seeds') else (config.seed,)


def config_hash(config: Any) -> str:
  """Returns 12 hex digits that name the config's results folder."""
  text = json.dumps(config_dict(config), sort_keys=True)
  return hashlib.sha256(text.encode()).hexdigest()[:12]


def canonical_number(text: str | int | float | Fraction) -> str:
  """Returns the one spelling of an exact number: '1.0' and '1e0' become '1'.

  Raises:
    ValueError: if the text is not a finite number.
  """
  try:
    value = Fraction(str(text))
  except (ValueError, ZeroDivisionError):
    raise ValueError(f'expected an exact number, got {text!r}') from None
  decimal = Decimal(value.numerator) / Decimal(value.denominator)
  exact = Fraction(decimal) == value
  return format(decimal.normalize(), 'f') if exact else str(value)


def canonical_numbers(name: str, texts: Iterable[str]) -> tuple[str, ...]:
  """Returns canonical spellings; errors name the flag."""
  try:
    return tuple(canonical_number(text) for text in texts)
  except ValueError as error:
    raise ValueError(f'{name}: {error}') from None


def check_numbers(name: str, texts: tuple[str, ...], most: int | None) -> None:
  """Checks canonical numbers: at least one, distinct, > 0 and at most `most`.

  Raises:
    ValueError: naming the flag and the value.
  """
  if canonical_numbers(name, texts) != texts:
    spelled = canonical_numbers(name, texts)
    raise ValueError(f'{name} must be spelled as {spelled}, got {texts}')
  values = [Fraction(text) for text in texts]
  bound = '> 0' if most is None else f'in (0, {most}]'
  if not values or len(set(values)) < len(values):
    raise ValueError(f'{name} must be distinct and not empty, got {texts}')
  for text, value in zip(texts, values):
    if value <= 0 or (most is not None and value > most):
      raise ValueError(f'{name} must be {bound}, got {text}')


def check_seeds(seeds: tuple[int, ...]) -> None:
  """Checks that seeds are in [0, 2**32), distinct and not empty.

  Raises:
    ValueError: naming the flag and the value.
  """
  if not seeds or len(set(seeds)) < len(seeds):
    raise ValueError(f'seeds must be distinct and not empty, got {seeds}')
  for seed in seeds:
    if not 0 <= seed < 2**32:
      raise ValueError(f'seeds must be in [0, 2**32), got {seed}')


def check_choices(
  name: str, values: tuple[str, ...], choices: tuple[str, ...]
) -> None:
  """Checks that a list flag is not empty, distinct and holds known words.

  Raises:
    ValueError: naming the flag and the value.
  """
  if not values or len(set(values)) < len(values):
    raise ValueError(f'{name} must be distinct and not empty, got {values}')
  for value in values:
    if value not in choices:
      raise ValueError(f'{name} must be among {choices}, got {value!r}')


def decision_digest(rows: list[Row]) -> str:
  """Hashes the integer, boolean and string fields: equal on any machine."""
  keep = lambda value: not isinstance(value, float)
  return _digest([{k: v for k, v in row.items() if keep(v)} for row in rows])


def value_digest(rows: list[Row], measured: frozenset[str]) -> str:
  """Hashes every field but the measured ones: equal in one environment."""
  return _digest(
    [{k: v for k, v in row.items() if k not in measured} for row in rows]
  )


def _digest(rows: list[Row]) -> str:
  lines = sorted(json.dumps(row, sort_keys=True) for row in rows)
  return hashlib.sha256('\n'.join(lines).encode()).hexdigest()

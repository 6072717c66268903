"""Certified release: what was paid, what was released, and the proof of it."""

from privjax.release.card import html_card
from privjax.release.explainer import Offer
from privjax.release.explainer import PrivateExplainer
from privjax.release.explainer import Release
from privjax.release.explainer import ReleaseError
from privjax.release.ledger import Ledger
from privjax.release.ledger_chain import verify_export
from privjax.release.ledger_errors import InsufficientBudgetError
from privjax.release.ledger_errors import LedgerError
from privjax.release.ledger_errors import LedgerExistsError
from privjax.release.ledger_errors import LedgerRollbackError
from privjax.release.ledger_errors import LedgerStorageError
from privjax.release.ledger_errors import LedgerTamperError
from privjax.release.ledger_errors import LedgerVersionError
from privjax.release.ledger_errors import NetworkFileSystemError
from privjax.release.ledger_errors import ReadOnlyLedgerError
from privjax.release.ledger_errors import UnknownAccountError
from privjax.release.ledger_records import Balance
from privjax.release.ledger_records import Charge
from privjax.release.ledger_records import Receipt
from privjax.release.public_objects import PublicObjects

__all__ = (
  'Balance',
  'Charge',
  'InsufficientBudgetError',
  'Ledger',
  'LedgerError',
  'LedgerExistsError',
  'LedgerRollbackError',
  'LedgerStorageError',
  'LedgerTamperError',
  'LedgerVersionError',
  'NetworkFileSystemError',
  'Offer',
  'PrivateExplainer',
  'PublicObjects',
  'ReadOnlyLedgerError',
  'Receipt',
  'Release',
  'ReleaseError',
  'UnknownAccountError',
  'html_card',
  'verify_export',
)

"""Private linear models: empirical risk minimization with declared bounds."""

from privjax.erm import certified
from privjax.erm import estimators
from privjax.erm import losses
from privjax.erm import objective
from privjax.erm import output
from privjax.erm import single
from privjax.erm import solver
from privjax.erm import tuning
from privjax.erm.calibration import calibrate
from privjax.erm.calibration import Calibration
from privjax.erm.config import ErmConfig
from privjax.erm.config import unit_rows
from privjax.erm.config import UnitRows
from privjax.erm.model import decision_function
from privjax.erm.model import LinearModel
from privjax.erm.model import predict
from privjax.erm.model import probabilities
from privjax.erm.single import ConvergenceError
from privjax.erm.sweeps import cell_noise
from privjax.erm.sweeps import sweep
from privjax.erm.sweeps import SweepFits

__all__ = (
  'Calibration',
  'ConvergenceError',
  'ErmConfig',
  'LinearModel',
  'SweepFits',
  'UnitRows',
  'calibrate',
  'cell_noise',
  'certified',
  'decision_function',
  'estimators',
  'losses',
  'objective',
  'output',
  'predict',
  'probabilities',
  'single',
  'solver',
  'sweep',
  'tuning',
  'unit_rows',
)

"""Graph-level and model-level placement, and what they do to explanations."""

from privjax.mechanisms.sparse_noise import OutputTooLargeError
from privjax.placement import edge_rand
from privjax.placement import gaussian
from privjax.placement import lap_graph
from privjax.placement import local
from privjax.placement import model_level
from privjax.placement import pairs
from privjax.placement.diagnosis import diagnose
from privjax.placement.diagnosis import Diagnosis
from privjax.placement.diagnosis import field_labels
from privjax.placement.gaussian import GaussianConfig
from privjax.placement.noisy_graph import NoisyGraph
from privjax.placement.noisy_graph import retained_edges
from privjax.placement.noisy_graph import to_message_graph

__all__ = (
  'Diagnosis',
  'GaussianConfig',
  'NoisyGraph',
  'OutputTooLargeError',
  'diagnose',
  'edge_rand',
  'field_labels',
  'gaussian',
  'lap_graph',
  'local',
  'model_level',
  'pairs',
  'retained_edges',
  'to_message_graph',
)

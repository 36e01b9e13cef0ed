"""The models that these tests run."""

from dataflow_assets_tests.operators.models.minilm import minilm_folder
from dataflow_assets_tests.operators.models.tiny_models import tiny_classifier, tiny_gpt2
from dataflow_assets_tests.serving.smollm2 import smollm2_folder

__all__ = ["minilm_folder", "smollm2_folder", "tiny_classifier", "tiny_gpt2"]

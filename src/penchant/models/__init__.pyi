"""Parametrizations: where training starts and what the parameters compute."""

from penchant.measures.kernels.linearize import linearize
from penchant.models.attention_layer import attention
from penchant.models.convolutional import (
    FrequencyNet,
    convolutional_net,
    filters_predictor,
    frequency_net,
)
from penchant.models.diagonal import DiagonalLayers, DiagonalNet, ProductNet
from penchant.models.factorization import (
    DifferenceFactorization,
    Factorization,
    SymmetricFactorization,
)
from penchant.models.function import FunctionModel
from penchant.models.image_model import ImageModel, conv_net, dense_net
from penchant.models.linear import LinearMatrix, LinearPredictor
from penchant.models.linearized import OutputLayer
from penchant.models.matrix import DeepFactorization
from penchant.models.model import Model, Separable
from penchant.models.relu_nets import relu_net
from penchant.models.reparametrized import Reparametrized
from penchant.models.tokens.mlp import TokenMLP
from penchant.models.tokens.net import TokenNet
from penchant.models.tokens.transformer import TokenTransformer
from penchant.models.tokens.two_layer import TokenQuadratic, TwoTokenNet
from penchant.models.two_layer_nets import rescale_layers, student, two_layer
from penchant.models.unbiased import Difference, Unbiased
from penchant.models.univariate import univariate_relu
from penchant.models.wide_factors import wide_factorization, wishart_root

__all__ = [
    "DeepFactorization",
    "DiagonalLayers",
    "DiagonalNet",
    "Difference",
    "DifferenceFactorization",
    "Factorization",
    "FrequencyNet",
    "FunctionModel",
    "ImageModel",
    "LinearMatrix",
    "LinearPredictor",
    "Model",
    "OutputLayer",
    "ProductNet",
    "Reparametrized",
    "Separable",
    "SymmetricFactorization",
    "TokenMLP",
    "TokenNet",
    "TokenQuadratic",
    "TokenTransformer",
    "TwoTokenNet",
    "Unbiased",
    "attention",
    "conv_net",
    "convolutional_net",
    "dense_net",
    "filters_predictor",
    "frequency_net",
    "linearize",
    "relu_net",
    "rescale_layers",
    "student",
    "two_layer",
    "univariate_relu",
    "wide_factorization",
    "wishart_root",
]

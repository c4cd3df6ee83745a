"""lamina runs trained neural networks on CPUs.

    import lamina
    import numpy as np

    model = lamina.load("resnet50.onnx")
    (scores,) = model(np.zeros((1, 3, 224, 224), np.float32))

`load` reads a model (ONNX, OpenVINO IR, Caffe, TensorFlow, oneDNN Graph) and makes it ready for this processor.
Arrays are shared with lamina, not copied, where their type and order allow it.
"""

from lamina import _process as _process
from lamina._lamina import shutdown
from lamina._lamina import version as _library_version
from lamina.check import (
    BisectedRewrite,
    CheckedLayer,
    CheckedOutput,
    CheckedValue,
    CheckReport,
    CustomLayerTrial,
    PrecisionDrift,
    RankingAgreement,
    StoredAgreement,
)
from lamina.compiled import CompiledModel, Property
from lamina.errors import (
    BadCall,
    BadFile,
    BadInput,
    BadOption,
    Busy,
    Canceled,
    Error,
    Extension,
    Internal,
    OutOfMemory,
    OverLimit,
    Timeout,
    Unsupported,
)
from lamina.explain import LayerExplanation, StepTime
from lamina.graph import Drawing
from lamina.measuring import benchmark
from lamina.memory import empty
from lamina.model import Model, load
from lamina.offline import InputCut, optimize, quantize
from lamina.offline_reports import (
    GraphFigures,
    OptimizeReport,
    QuantizedLayer,
    QuantizedOutput,
    QuantizeReport,
)
from lamina.outputs import Outputs
from lamina.ports import Port
from lamina.queue import Queue
from lamina.request import LayerCounter, LayerTime, Request

__version__ = _library_version().removeprefix("lamina ")

__all__ = [
    "BadCall",
    "BadFile",
    "BadInput",
    "BadOption",
    "BisectedRewrite",
    "Busy",
    "Canceled",
    "CheckReport",
    "CheckedLayer",
    "CheckedOutput",
    "CheckedValue",
    "CompiledModel",
    "CustomLayerTrial",
    "Drawing",
    "Error",
    "Extension",
    "GraphFigures",
    "InputCut",
    "Internal",
    "LayerCounter",
    "LayerExplanation",
    "LayerTime",
    "Model",
    "OptimizeReport",
    "OutOfMemory",
    "Outputs",
    "OverLimit",
    "Port",
    "PrecisionDrift",
    "Property",
    "QuantizeReport",
    "QuantizedLayer",
    "QuantizedOutput",
    "Queue",
    "RankingAgreement",
    "Request",
    "StoredAgreement",
    "StepTime",
    "Timeout",
    "Unsupported",
    "__version__",
    "benchmark",
    "empty",
    "load",
    "optimize",
    "quantize",
    "shutdown",
]

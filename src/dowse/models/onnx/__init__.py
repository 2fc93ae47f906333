"""ONNX encoders without torch: model files enter, a session that computes vectors leaves."""

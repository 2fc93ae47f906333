"""ONNX encoders without torch: model files enter, a session that computes vectors leaves.

Imports only the core values and errors. The graph is generated and holds no weights; they are quantised with numpy.
"""

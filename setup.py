"""Build of the compiled kernel; everything else is in pyproject.toml. Without a C compiler, numpy does the same."""

from setuptools import Extension, setup

KERNELS = "src/dowse/store/kernels/"

setup(
    ext_modules=[
        Extension(
            "dowse.store.kernels._native",
            [KERNELS + "native.c"],
            depends=[KERNELS + name for name in ("native_simd.h", "native_vectors.h", "native_words.h")],
            # Sums must have the digits that numpy computes: no reordering, no fused operations.
            extra_compile_args=["-O3", "-std=gnu11", "-ffp-contract=off", "-fno-math-errno", "-Wno-psabi"],
            py_limited_api=True,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)

"""Products of matrices and vectors of doubles in kernels, as by ``numpy.dot``.

Inside kernels, ``numpy.dot`` compiles several functions for each combination of layouts and inserts their code wherever
it is called. This takes a third of the compilation of a kernel with many products. ``dot`` calls one function per
combination and kernel, with the same calls of BLAS, so its results are those of ``numpy.dot`` bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import impl_ret_new_ref, lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.np.arrayobj import _empty_nd_impl, make_array
from numba.np.linalg import call_xxdot, call_xxgemm, call_xxgemv, ensure_blas, make_contiguous

_SIZE, _DATA = ir.IntType(64), ir.DoubleType().as_pointer()


def dot(a: Any, b: Any) -> Any:
    """Return the product of a matrix or vector of doubles with another one, as ``numpy.dot``.

    Raises ValueError if their shapes do not match.
    """
    return np.dot(a, b)


@infer_global(dot)
class _Dot(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: Sequence[Any], kws: Any) -> Any:  # noqa: ARG002
        if not all(isinstance(arg, types.Array) and arg.dtype == types.float64 and arg.ndim in {1, 2} for arg in args):
            return None
        ndim = args[0].ndim + args[1].ndim - 2
        return signature(types.Array(types.float64, ndim, "C") if ndim else types.float64, *args)


@lower_builtin(dot, types.Array, types.Array)
def _lower_dot(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    ensure_blas()
    with make_contiguous(context, builder, sig, args) as (contiguous, arrays):
        a, b = (make_array(kind)(context, builder, value) for kind, value in zip(contiguous.args, arrays, strict=True))
        left, right = cgutils.unpack_tuple(builder, a.shape), cgutils.unpack_tuple(builder, b.shape)
        with builder.if_then(builder.icmp_signed("!=", left[-1], right[0]), likely=False):
            context.call_conv.return_user_exc(builder, ValueError, ("dot: the shapes do not match",))
        shape = [*left[:-1], *right[1:]]
        data = [builder.bitcast(array.data, _DATA) for array in (a, b)]
        product = _product(context, builder.module, *contiguous.args)
        if not shape:
            result = cgutils.alloca_once(builder, ir.DoubleType())
            builder.call(product, [*data, result, left[0]])
            return builder.load(result)
        out = _empty_nd_impl(context, builder, sig.return_type, shape)
        builder.call(product, [*data, builder.bitcast(out.data, _DATA), *left, *right[1:]])
    return impl_ret_new_ref(context, builder, sig.return_type, out._getvalue())  # noqa: SLF001


def _product(context: Any, module: ir.Module, a: types.Array, b: types.Array) -> ir.Function:
    """Return the function of a module that writes a product of arrays of two types; it has no array as result.

    Its arguments are the three arrays, the shape of a, and the columns of b.
    """
    name = f"ep_bench_product_{a.ndim}{a.layout}_{b.ndim}{b.layout}"
    sizes = a.ndim + b.ndim - 1
    function = cgutils.get_or_insert_function(
        module, ir.FunctionType(ir.VoidType(), [_DATA] * 3 + [_SIZE] * sizes), name
    )
    if function.is_declaration:
        function.linkage = "linkonce_odr"
        function.attributes.add("noinline")
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        _write_product(context, builder, a, b, function.args[:3], function.args[3:])
        builder.ret_void()
    return function


def _write_product(context: Any, builder: Any, a: types.Array, b: types.Array, data: Any, sizes: Any) -> None:
    """Generate the body of a product function: zeros if an array is empty, otherwise one call of BLAS."""
    x, y, out = data
    m, k, n = sizes[0], sizes[a.ndim - 1], sizes[-1]
    if a.ndim == b.ndim == 1:
        call_xxdot(context, builder, False, a.dtype, k, x, y, out)
        return
    empty = builder.or_(_is(builder, k, 0), builder.or_(_is(builder, m, 0), _is(builder, n, 0)))
    with builder.if_else(empty, likely=False) as (nothing, something):
        with nothing:
            elements = (m if a.ndim == 2 else _constant(1), n if b.ndim == 2 else _constant(1))
            cgutils.memset(builder, out, builder.mul(_constant(8), builder.mul(*elements)), 0)
        with something:
            if b.ndim == 1:
                call_xxgemv(context, builder, a.layout == "C", a, (m, k), x, y, out)
            elif a.ndim == 1:
                call_xxgemv(context, builder, b.layout == "F", b, (k, n), y, x, out)
            else:
                _write_matrix_product(context, builder, a, b, data, (m, k, n))


def _write_matrix_product(context: Any, builder: Any, a: Any, b: Any, data: Any, sizes: Any) -> None:
    """Generate the product of two matrices; with one row or one column it is that of a matrix and a vector."""
    x, y, out = data
    m, k, n = sizes
    result = types.Array(types.float64, 2, "C")
    with builder.if_else(_is(builder, n, 1)) as (column, columns):
        with column, builder.if_else(_is(builder, m, 1)) as (row, rows):
            with row:
                call_xxdot(context, builder, False, a.dtype, k, x, y, out)
            with rows:
                call_xxgemv(context, builder, a.layout == "C", a, (m, k), x, y, out)
        with columns, builder.if_else(_is(builder, m, 1)) as (row, rows):
            with row:
                call_xxgemv(context, builder, b.layout == "F", b, (k, n), y, x, out)
            with rows:
                call_xxgemm(context, builder, a, (m, k), x, b, (k, n), y, result, (m, n), out)


def _is(builder: Any, size: Any, value: int) -> Any:
    return builder.icmp_signed("==", size, _constant(value))


def _constant(value: int) -> ir.Constant:
    return ir.Constant(_SIZE, value)

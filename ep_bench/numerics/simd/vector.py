"""Vectors of ``WIDTH`` doubles for kernels whose loops the compiler would not vectorise itself.

The compiler must assume that the arrays of a kernel overlap, and it does not vectorise a loop that carries sums over an
outer index. A kernel that iterates over blocks of units uses vectors explicitly::

    total = load(weights, start) * x          # WIDTH products
    total = total + load(weights, start + stride)
    store(out, start, total)

Vectors support ``+ - * /``, unary minus and the functions below, with other vectors or with a float, which is repeated
in every lane. Products and sums may fuse into one rounding; no other rule of IEEE 754 is relaxed. Functions that also
take a float serve kernels written once for both. Arrays are contiguous, with one dimension. Without the compiler
(NUMBA_DISABLE_JIT=1), vectors are NumPy arrays (WIDTH,).
"""

# Numba calls the functions below and compares their signatures by the names of the arguments.
# ruff: noqa: ARG001, ARG005, PLW0108

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.cgutils import get_or_insert_function
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, models, overload, register_model

WIDTH = 8
ALIGNMENT = 64  # bytes, a cache line
MAGIC = 1.5 * 2.0**52  # the low bits of x + MAGIC are x rounded to an integer

_DOUBLE, _WORD = ir.DoubleType(), ir.IntType(64)
_VECTOR = ir.VectorType(_DOUBLE, WIDTH)
_FUSE = ("contract",)


def padded(n: int) -> int:
    """Return n rounded up to a multiple of WIDTH."""
    return -(-n // WIDTH) * WIDTH


def aligned(n: int, fill: float = 0.0) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return an array (n,) of ``fill`` that starts on a cache line."""
    raw = np.empty(n + ALIGNMENT // 8, dtype=np.float64)
    first = (-raw.ctypes.data % ALIGNMENT) // 8
    out = raw[first : first + n]
    out[...] = fill
    return out


def load(array: Any, index: int) -> Any:
    """Return array[index : index + WIDTH] as a vector; bounds are not checked."""
    return array[index : index + WIDTH].copy()


def store(array: Any, index: int, lanes: Any) -> None:
    """Write a vector to array[index : index + WIDTH]; bounds are not checked."""
    array[index : index + WIDTH] = lanes


def repeat(array: Any, index: int) -> Any:
    """Return a vector with array[index] in all lanes; bounds are not checked."""
    return np.full(WIDTH, array[index])


def spread(x: float) -> Any:
    """Return a vector with x in all lanes."""
    return np.full(WIDTH, x)


def square_root(x: Any) -> Any:
    """Return the square root of a vector or a float."""
    return np.sqrt(x)


def absolute(x: Any) -> Any:
    """Return the absolute value of a vector or a float."""
    return np.abs(x)


def select_above(x: Any, bound: Any, yes: Any, no: Any) -> Any:
    """Return ``yes`` where x > bound, otherwise ``no``, also where x is NaN; all vectors or all floats."""
    return np.where(x > bound, yes, no)


def any_not_above(x: Any, bound: float) -> bool:
    """Return whether a lane is at or below the bound, or NaN."""
    return not bool(np.all(x > bound))


def total(x: Any) -> float:
    """Return the sum of the lanes by repeated halving."""
    while len(x) > 1:
        x = x[: len(x) // 2] + x[len(x) // 2 :]
    return float(x[0])


def power_of_two(shifted: Any) -> Any:
    """Return 2^k, |k| < 1023, for a vector or a float k + MAGIC."""
    return np.ldexp(1.0, np.asarray(shifted - MAGIC, dtype=np.int64))


class Vector(types.Type):
    """Type of a register in compiled code."""

    def __init__(self) -> None:
        super().__init__(name=f"Lanes{WIDTH}")


LANES = Vector()


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, fe_type: Any) -> None:
        super().__init__(manager, fe_type, _VECTOR)


def _vector(builder: Any, value: Any) -> Any:
    """Return a value as a vector; a scalar is repeated in every lane."""
    if isinstance(value.type, ir.VectorType):
        return value
    empty = ir.Constant(_VECTOR, ir.Undefined)
    one = builder.insert_element(empty, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, empty, ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH))


def _binary(function: Callable[..., Any], instruction: str) -> None:
    """Define an arithmetic operator for vectors."""

    @infer_global(function)
    class Template(AbstractTemplate):  # type: ignore[misc]
        def generic(self, args: Any, kws: Any) -> Any:
            if kws or len(args) != 2 or not any(isinstance(arg, Vector) for arg in args):
                return None
            if not all(isinstance(arg, (Vector, types.Float, types.Integer)) for arg in args):
                return None
            return signature(LANES, *[arg if isinstance(arg, Vector) else types.float64 for arg in args])

    for kinds in ((Vector, Vector), (Vector, types.Float), (types.Float, Vector)):

        @lower_builtin(function, *kinds)
        def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            left, right = (_vector(builder, arg) for arg in args)
            return getattr(builder, instruction)(left, right, flags=_FUSE)


for _function, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _binary(_function, _instruction)


@infer_global(operator.neg)
class _Negative(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(LANES, LANES) if not kws and len(args) == 1 and isinstance(args[0], Vector) else None


@lower_builtin(operator.neg, Vector)
def _lower_negative(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.fneg(args[0], flags=_FUSE)


def _address(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), _VECTOR.as_pointer())


@intrinsic
def _load(typing_context: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load(_address(context, builder, sig.args[0], *args), align=8)

    return LANES(array, types.intp), generate


@intrinsic
def _store(typing_context: Any, array: Any, index: Any, lanes: Any) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        builder.store(args[2], _address(context, builder, sig.args[0], *args[:2]), align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, LANES), generate


@intrinsic
def _repeat(typing_context: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        return _vector(builder, builder.load(builder.gep(data, [args[1]])))

    return LANES(array, types.intp), generate


@intrinsic
def _spread(typing_context: Any, x: Any) -> Any:
    return LANES(types.float64), lambda context, builder, sig, args: _vector(builder, args[0])


def _unary(name: str) -> Any:
    """Return an intrinsic that calls the LLVM function ``name`` on a vector."""

    @intrinsic
    def call(typing_context: Any, x: Any) -> Any:
        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            kind = ir.FunctionType(_VECTOR, [_VECTOR])
            function = get_or_insert_function(builder.module, kind, f"llvm.{name}.v{WIDTH}f64")
            return builder.call(function, args)

        return LANES(LANES), generate

    return call


_sqrt, _fabs = _unary("sqrt"), _unary("fabs")


@intrinsic
def _select_above(typing_context: Any, x: Any, bound: Any, yes: Any, no: Any) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        left, right, first, second = (_vector(builder, arg) for arg in args)
        return builder.select(builder.fcmp_ordered(">", left, right), first, second)

    kinds = [arg if isinstance(arg, Vector) else types.float64 for arg in (x, bound, yes, no)]
    return signature(LANES, *kinds), generate


@intrinsic
def _any_not_above(typing_context: Any, x: Any, bound: Any) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        mask = builder.fcmp_unordered("<=", args[0], _vector(builder, args[1]))
        bits = builder.bitcast(mask, ir.IntType(WIDTH))
        return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(WIDTH), 0))

    return types.boolean(LANES, types.float64), generate


@intrinsic
def _total(typing_context: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        parts = [builder.extract_element(args[0], ir.Constant(ir.IntType(32), k)) for k in range(WIDTH)]
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [builder.fadd(a, b) for a, b in zip(parts[:half], parts[half:], strict=True)]
        return parts[0]

    return types.float64(LANES), generate


@intrinsic
def _power_of_two(typing_context: Any, shifted: Any) -> Any:
    vector = isinstance(shifted, Vector)
    words: Any = ir.VectorType(_WORD, WIDTH) if vector else _WORD

    def constant(value: int) -> Any:
        return ir.Constant(words, [value] * WIDTH if vector else value)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        # The low bits of k + MAGIC are k in two's complement. The exponent starts at bit 52 and is 1023 for 2^0.
        exponent = builder.shl(builder.bitcast(args[0], words), constant(52))
        return builder.bitcast(builder.add(exponent, constant(1023 << 52)), _VECTOR if vector else _DOUBLE)

    kind = LANES if vector else types.float64
    return kind(kind), generate


@overload(load, strict=False)
def _overload_load(array: Any, index: Any) -> Any:
    return lambda array, index: _load(array, index)


@overload(store, strict=False)
def _overload_store(array: Any, index: Any, lanes: Any) -> Any:
    return lambda array, index, lanes: _store(array, index, lanes)


@overload(repeat, strict=False)
def _overload_repeat(array: Any, index: Any) -> Any:
    return lambda array, index: _repeat(array, index)


@overload(spread, strict=False)
def _overload_spread(x: Any) -> Any:
    return lambda x: _spread(x)


@overload(square_root, strict=False)
def _overload_square_root(x: Any) -> Any:
    return (lambda x: _sqrt(x)) if isinstance(x, Vector) else (lambda x: math.sqrt(x))


@overload(absolute, strict=False)
def _overload_absolute(x: Any) -> Any:
    return (lambda x: _fabs(x)) if isinstance(x, Vector) else (lambda x: abs(x))


@overload(select_above, strict=False)
def _overload_select_above(x: Any, bound: Any, yes: Any, no: Any) -> Any:
    if isinstance(x, Vector):
        return lambda x, bound, yes, no: _select_above(x, bound, yes, no)
    return lambda x, bound, yes, no: yes if x > bound else no


@overload(any_not_above, strict=False)
def _overload_any_not_above(x: Any, bound: Any) -> Any:
    return lambda x, bound: _any_not_above(x, bound)


@overload(total, strict=False)
def _overload_total(x: Any) -> Any:
    return lambda x: _total(x)


@overload(power_of_two, strict=False)
def _overload_power_of_two(shifted: Any) -> Any:
    return lambda shifted: _power_of_two(shifted)

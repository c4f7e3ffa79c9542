"""A tile of vector registers, R rows of C registers, for sums of products over rows of a matrix.

A kernel that multiplies narrow matrices holds R rows of C registers in the processor and reads each number once for R
or C of its products. The type of ``shape``, a tuple of R tuples of C zeros, determines R and C, so that a kernel is
compiled for each shape. With ``i`` an input, ``W`` (n, C WIDTH) weights row by row, ``x`` rows of n numbers::

    A = tile_of_rows(shape, bias, 0)             # A[r] = bias
    for i in range(n):
        A = plus_products(A, W, i * C * WIDTH, x, i, n)      # A[r] += W[i] x[r, i]

The functions take contiguous arrays of one dimension and one type, doubles or single-precision floats, and indices of
their first elements; a register has WIDTH of them. Bounds are not checked. Products and sums may fuse into one
rounding. Without the compiler (NUMBA_DISABLE_JIT=1) a tile is an array (R, C, WIDTH).
"""

# Numba calls the functions below and compares their signatures by the names of the arguments.
# ruff: noqa: ARG001, PLW0108

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba.core import types
from numba.extending import intrinsic, models, overload, register_model

from ep_bench.numerics.simd.vector import WIDTH

REGISTERS = 32  # of WIDTH doubles, on processors that have them
MAX_ROWS = 8

_INT = ir.IntType(32)
_FUSE = ("contract",)


@cache
def wide_registers() -> bool:
    """Return whether this processor has registers of WIDTH doubles."""
    return bool(binding.get_host_cpu_features().get("avx512f", False))


def shape_of(n: int) -> tuple[tuple[int, ...], ...]:
    """Return the shape of tiles with n doubles per row, or () if a tile of two rows would need too many registers."""
    columns = -(-n // WIDTH)
    rows = min((REGISTERS - 2) // (columns + 1), MAX_ROWS)
    return ((0,) * columns,) * rows if rows > 1 else ()


def tile_of_rows(shape: Any, array: Any, at: int) -> Any:
    """Return a tile whose rows are all equal to array[at : at + C WIDTH]."""
    row = array[at : at + len(shape[0]) * WIDTH].reshape(len(shape[0]), WIDTH)
    return np.array([row for _ in shape])


def plus_products(tile: Any, array: Any, at: int, x: Any, first: int, stride: int) -> Any:
    """Return the tile plus array[at : at + C WIDTH] times x[first + r stride] in each row r."""
    rows, columns = tile.shape[:2]
    row = array[at : at + columns * WIDTH].reshape(columns, WIDTH)
    return tile + row * x[first : first + (rows - 1) * stride + 1 : stride].reshape(rows, 1, 1)


def store_positive_sums(tile: Any, array: Any, at: int, out: Any, first: int) -> None:
    """Write the sum of max(row r, 0) times array[at : at + C WIDTH] to out[first + r]; NaN stays."""
    row = array[at : at + tile.shape[1] * WIDTH].reshape(tile.shape[1], WIDTH)
    out[first : first + len(tile)] = (np.where(tile < 0.0, 0.0, tile) * row).sum(axis=(1, 2))


def gate(tile: Any, x: Any, first: int) -> Any:
    """Return a tile with x[first + r] where row r is positive, otherwise 0."""
    return np.where(tile > 0.0, x[first : first + len(tile)].reshape(-1, 1, 1), 0.0)


def add_products(tile: Any, array: Any, at: int, x: Any, first: int, stride: int) -> None:
    """Add the sum of the rows r, times x[first + r stride], to array[at : at + C WIDTH]."""
    rows, columns = tile.shape[:2]
    factors = x[first : first + (rows - 1) * stride + 1 : stride].reshape(rows, 1, 1)
    array[at : at + columns * WIDTH] += (tile * factors).sum(axis=0).ravel()


def add_rows(tile: Any, array: Any, at: int) -> None:
    """Add the sum of the rows to array[at : at + C WIDTH]."""
    array[at : at + tile.shape[1] * WIDTH] += tile.sum(axis=0).ravel()


class Tile(types.Type):
    """Type of a tile in compiled code."""

    def __init__(self, rows: int, columns: int, element: types.Float) -> None:
        self.rows, self.columns, self.element = rows, columns, element
        super().__init__(name=f"Tile({rows}, {columns}, {element})")

    @property
    def register(self) -> ir.VectorType:
        """The LLVM type of a register."""
        return ir.VectorType(ir.DoubleType() if self.element == types.float64 else ir.FloatType(), WIDTH)


@register_model(Tile)
class _TileModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, fe_type: Any) -> None:
        super().__init__(manager, fe_type, ir.ArrayType(fe_type.register, fe_type.rows * fe_type.columns))


class _Emitter:
    """Generates the LLVM instructions of one operation on a tile."""

    def __init__(self, context: Any, builder: Any, tile: Tile) -> None:
        self.context, self.builder, self.tile, self.register = context, builder, tile, tile.register
        self.zero = ir.Constant(tile.register, [0.0] * WIDTH)
        self.align = tile.element.bitwidth // 8

    def address(self, kind: Any, array: Any, index: Any, register: int = 0) -> Any:
        data = self.context.make_array(kind)(self.context, self.builder, array).data
        return self.builder.gep(self.builder.gep(data, [index]), [ir.Constant(ir.IntType(64), register * WIDTH)])

    def _pointer(self, *place: Any) -> Any:
        return self.builder.bitcast(self.address(*place), self.register.as_pointer())

    def load(self, *place: Any) -> Any:
        return self.builder.load(self._pointer(*place), align=self.align)

    def store(self, value: Any, *place: Any) -> None:
        self.builder.store(value, self._pointer(*place), align=self.align)

    def repeat(self, kind: Any, array: Any, index: Any) -> Any:
        value = self.builder.load(self.address(kind, array, index))
        empty = ir.Constant(self.register, ir.Undefined)
        one = self.builder.insert_element(empty, value, ir.Constant(_INT, 0))
        return self.builder.shuffle_vector(one, empty, ir.Constant(ir.VectorType(_INT, WIDTH), [0] * WIDTH))

    def factors(self, kind: Any, array: Any, first: Any, stride: Any) -> list[Any]:
        """Return one register per row r with x[first + r stride] in all lanes."""
        places = [first]
        for _ in range(1, self.tile.rows):
            places.append(self.builder.add(places[-1], stride))
        return [self.repeat(kind, array, place) for place in places]

    def parts(self, value: Any) -> list[list[Any]]:
        """Return the registers (R, C) of a tile."""
        taken = [self.builder.extract_value(value, k) for k in range(self.tile.rows * self.tile.columns)]
        return [taken[r * self.tile.columns : (r + 1) * self.tile.columns] for r in range(self.tile.rows)]

    def whole(self, parts: list[list[Any]]) -> Any:
        """Return the tile of registers (R, C)."""
        value = ir.Constant(ir.ArrayType(self.register, self.tile.rows * self.tile.columns), ir.Undefined)
        for k, part in enumerate(part for row in parts for part in row):
            value = self.builder.insert_value(value, part, k)
        return value

    def product_sum(self, x: Any, y: Any, sum_: Any) -> Any:
        return self.builder.fadd(sum_, self.builder.fmul(x, y, flags=_FUSE), flags=_FUSE)

    def positive(self, x: Any) -> Any:
        return self.builder.select(self.builder.fcmp_ordered("<", x, self.zero), self.zero, x)

    def total(self, x: Any) -> Any:
        parts = [self.builder.extract_element(x, ir.Constant(_INT, k)) for k in range(WIDTH)]
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [self.builder.fadd(a, b) for a, b in zip(parts[:half], parts[half:], strict=True)]
        return parts[0]


@intrinsic
def _tile_of_rows(typing_context: Any, shape: Any, array: Any, at: Any) -> Any:
    tile = Tile(len(shape), len(shape[0]), array.dtype)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        emit = _Emitter(context, builder, tile)
        row = [emit.load(sig.args[1], args[1], args[2], c) for c in range(tile.columns)]
        return emit.whole([row] * tile.rows)

    return tile(shape, array, types.intp), generate


@intrinsic
def _plus_products(typing_context: Any, tile: Any, array: Any, at: Any, x: Any, first: Any, stride: Any) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        emit = _Emitter(context, builder, tile)
        factors, parts = emit.factors(sig.args[3], *args[3:]), emit.parts(args[0])
        for c in range(tile.columns):
            weights = emit.load(sig.args[1], args[1], args[2], c)
            for r in range(tile.rows):
                parts[r][c] = emit.product_sum(weights, factors[r], parts[r][c])
        return emit.whole(parts)

    return tile(tile, array, types.intp, x, types.intp, types.intp), generate


@intrinsic
def _store_positive_sums(typing_context: Any, tile: Any, array: Any, at: Any, out: Any, first: Any) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        emit = _Emitter(context, builder, tile)
        parts, sums = emit.parts(args[0]), [emit.zero] * tile.rows
        for c in range(tile.columns):
            weights = emit.load(sig.args[1], args[1], args[2], c)
            for r in range(tile.rows):
                sums[r] = emit.product_sum(weights, emit.positive(parts[r][c]), sums[r])
        place = emit.address(sig.args[3], args[3], args[4])
        for r in range(tile.rows):
            builder.store(emit.total(sums[r]), builder.gep(place, [ir.Constant(ir.IntType(64), r)]))
        return context.get_dummy_value()

    return types.void(tile, array, types.intp, out, types.intp), generate


@intrinsic
def _gate(typing_context: Any, tile: Any, x: Any, first: Any) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        emit = _Emitter(context, builder, tile)
        factors = emit.factors(sig.args[1], args[1], args[2], ir.Constant(ir.IntType(64), 1))
        parts = emit.parts(args[0])
        for row, factor in zip(parts, factors, strict=True):
            row[:] = [builder.select(builder.fcmp_ordered(">", part, emit.zero), factor, emit.zero) for part in row]
        return emit.whole(parts)

    return tile(tile, x, types.intp), generate


@intrinsic
def _add_products(typing_context: Any, tile: Any, array: Any, at: Any, x: Any, first: Any, stride: Any) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        emit = _Emitter(context, builder, tile)
        factors, parts = emit.factors(sig.args[3], *args[3:]), emit.parts(args[0])
        for c in range(tile.columns):
            place = (sig.args[1], args[1], args[2], c)
            sum_ = emit.load(*place)
            for r in range(tile.rows):
                sum_ = emit.product_sum(parts[r][c], factors[r], sum_)
            emit.store(sum_, *place)
        return context.get_dummy_value()

    return types.void(tile, array, types.intp, x, types.intp, types.intp), generate


@intrinsic
def _add_rows(typing_context: Any, tile: Any, array: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        emit = _Emitter(context, builder, tile)
        parts = emit.parts(args[0])
        for c in range(tile.columns):
            place = (sig.args[1], args[1], args[2], c)
            sum_ = emit.load(*place)
            for r in range(tile.rows):
                sum_ = builder.fadd(sum_, parts[r][c])
            emit.store(sum_, *place)
        return context.get_dummy_value()

    return types.void(tile, array, types.intp), generate


@overload(tile_of_rows, strict=False)
def _overload_tile_of_rows(shape: Any, array: Any, at: Any) -> Any:
    return lambda shape, array, at: _tile_of_rows(shape, array, at)


@overload(plus_products, strict=False)
def _overload_plus_products(tile: Any, array: Any, at: Any, x: Any, first: Any, stride: Any) -> Any:
    return lambda tile, array, at, x, first, stride: _plus_products(tile, array, at, x, first, stride)


@overload(store_positive_sums, strict=False)
def _overload_store_positive_sums(tile: Any, array: Any, at: Any, out: Any, first: Any) -> Any:
    return lambda tile, array, at, out, first: _store_positive_sums(tile, array, at, out, first)


@overload(gate, strict=False)
def _overload_gate(tile: Any, x: Any, first: Any) -> Any:
    return lambda tile, x, first: _gate(tile, x, first)


@overload(add_products, strict=False)
def _overload_add_products(tile: Any, array: Any, at: Any, x: Any, first: Any, stride: Any) -> Any:
    return lambda tile, array, at, x, first, stride: _add_products(tile, array, at, x, first, stride)


@overload(add_rows, strict=False)
def _overload_add_rows(tile: Any, array: Any, at: Any) -> Any:
    return lambda tile, array, at: _add_rows(tile, array, at)

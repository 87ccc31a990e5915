"""Properties of symbolic expressions: the canonical form means what it says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingot_compiler.ir.dims import (
    FUNCTIONS,
    Dim,
    dim_add,
    dim_floordiv,
    dim_max,
    dim_min,
    dim_mod,
    dim_mul,
    dim_product,
    evaluate,
    format_dim,
    from_terms,
    substitute,
    symbol,
    symbols_of,
    terms_of,
)
from ingot_compiler.ir.sizes.mixed_radix import recombined
from ingot_compiler.ir.sizes.ranges import (
    at_most,
    equal,
    is_nonnegative,
    less,
    lower_bound,
    maximum,
    minimum,
    sign,
)
from ingot_compiler.ir.sizes.symbol_terms import bare_symbol, coefficient
from ingot_compiler.ir.text.parse_graph import parse_structure

NAMES = ("s0", "s1", "h")
Tree = int | str | tuple[str, "Tree", "Tree"]
POSITIVE = st.fixed_dictionaries({name: st.integers(1, 40) for name in NAMES})
SIZES = st.fixed_dictionaries({name: st.integers(0, 40) for name in NAMES})
LEAVES = st.integers(-12, 12) | st.sampled_from(NAMES)


def _grow(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    plain = st.tuples(st.sampled_from(("add", "sub", "mul", "min", "max")), inner, inner)
    # Divisors are sizes: positive numbers or symbols.
    divisors = st.integers(1, 9) | st.sampled_from(NAMES)
    return plain | st.tuples(st.sampled_from(("floordiv", "mod")), inner, divisors)


TREES: st.SearchStrategy[Tree] = st.recursive(LEAVES, _grow, max_leaves=8)


def build(tree: Tree) -> Dim:
    """The expression of a tree, canonical at every step."""
    if isinstance(tree, int):
        return tree
    if isinstance(tree, str):
        return symbol(tree)
    function, left, right = tree[0], build(tree[1]), build(tree[2])
    if function == "sub":
        return dim_add(left, dim_mul(right, -1))
    return {"add": dim_add, "mul": dim_mul, **FUNCTIONS}[function](left, right)


def value_of(tree: Tree, bindings: dict[str, int]) -> int:
    """The tree's value in plain integers."""
    if isinstance(tree, int):
        return tree
    if isinstance(tree, str):
        return bindings[tree]
    function, a, b = tree[0], value_of(tree[1], bindings), value_of(tree[2], bindings)
    table = {"add": a + b, "sub": a - b, "mul": a * b, "min": min(a, b), "max": max(a, b)}
    return table[function] if function in table else a // b if function == "floordiv" else a % b


@given(TREES, POSITIVE)
def test_the_canonical_form_keeps_the_value(tree: Tree, bindings: dict[str, int]) -> None:
    """Simplification never changes a value, for positive sizes."""
    assert evaluate(build(tree), bindings) == value_of(tree, bindings)


@given(TREES, TREES, TREES)
def test_sums_and_products_are_canonical(a: Tree, b: Tree, c: Tree) -> None:
    """Equal polynomials are equal objects: commutative, associative, distributive, x - x = 0."""
    x, y, z = build(a), build(b), build(c)
    assert dim_add(x, y) == dim_add(y, x)
    assert dim_mul(x, y) == dim_mul(y, x)
    assert dim_add(dim_add(x, y), z) == dim_add(x, dim_add(y, z))
    assert dim_mul(dim_mul(x, y), z) == dim_mul(x, dim_mul(y, z))
    assert dim_mul(x, dim_add(y, z)) == dim_add(dim_mul(x, y), dim_mul(x, z))
    assert dim_add(x, dim_mul(x, -1)) == 0
    assert hash(dim_add(x, y)) == hash(dim_add(y, x))


@given(TREES)
def test_terms_are_sorted_and_never_zero(tree: Tree) -> None:
    """The term table rebuilds the expression, holds no zero, and a bare constant is an int."""
    dim = build(tree)
    assert from_terms(dict(terms_of(dim))) == dim
    assert all(factor for _, factor in terms_of(dim))
    assert isinstance(dim, int) or any(monomial for monomial, _ in dim.terms)


@given(TREES)
def test_text_is_read_back(tree: Tree) -> None:
    """The parser gives the same expression for the printed text."""
    dim = build(tree)
    graph = parse_structure(f"graph() {{ x() {{d={format_dim(dim)}}} return }}")
    assert graph.nodes[0].dim("d") == dim


@given(st.integers(-100, 100), st.integers(-9, 9))
def test_division_of_integers(a: int, b: int) -> None:
    """a = (a // b) * b + a % b, rounding to -infinity; a divisor of 0 gives 0."""
    quotient, rest = dim_floordiv(a, b), dim_mod(a, b)
    if b:
        assert (quotient, rest) == (a // b, a % b)
    else:
        assert (quotient, rest) == (0, 0)


@given(TREES, st.integers(1, 9), POSITIVE)
def test_quotient_and_rest_make_the_whole(
    tree: Tree, divisor: int, bindings: dict[str, int]
) -> None:
    """x = floordiv(x, d) * d + mod(x, d) and 0 <= mod(x, d) < d."""
    x = build(tree)
    quotient, rest = (evaluate(f(x, divisor), bindings) for f in (dim_floordiv, dim_mod))
    assert quotient * divisor + rest == evaluate(x, bindings)
    assert 0 <= rest < divisor


@given(TREES, st.integers(-9, 9).filter(bool))
def test_multiples_divide_exactly(tree: Tree, divisor: int) -> None:
    """floordiv(x * d, d) = x and mod(x * d, d) = 0 without a call left over."""
    x = build(tree)
    assert dim_floordiv(dim_mul(x, divisor), divisor) == x
    assert dim_mod(dim_mul(x, divisor), divisor) == 0


@given(TREES, TREES, POSITIVE)
def test_products_of_sums_divide_exactly(tree: Tree, other: Tree, bindings: dict[str, int]) -> None:
    """floordiv(x * y, y) = x wherever y is not 0, without a call left over if y is a sum: a reshape
    to -1 of features whose height and width are open, as detectors have them."""
    x, y = build(tree), build(other)
    quotient, rest = dim_floordiv(x * y, y), dim_mod(x * y, y)
    if evaluate(y, bindings):
        assert evaluate(quotient, bindings) == evaluate(x, bindings)
        assert evaluate(rest, bindings) == 0
    if not isinstance(y, int):
        assert (quotient, rest) == (x, 0)


def test_a_sum_that_does_not_divide_stays_below_the_call() -> None:
    """Long division gives all or nothing."""
    n, m = symbol("n"), symbol("m")
    height, width = n + 1, m + 2
    assert dim_floordiv(6 * height * width, 2 * height) == 3 * width
    assert format_dim(dim_floordiv(height * width + 1, height)).startswith("floordiv(")
    assert format_dim(dim_floordiv(3 * height, 2 * height)) == "floordiv(3*n + 3, 2*n + 2)"


def test_division_by_a_symbol_that_is_zero() -> None:
    """The documented rule: a quotient that cancels stays as if the symbol were not 0; one that does
    not gives 0."""
    n, m = symbol("n"), symbol("m")
    assert dim_floordiv(n * m, n) == m
    assert evaluate(dim_floordiv(n + 1, m), {"n": 3, "m": 0}) == 0
    assert evaluate(dim_mod(n + 1, m), {"n": 3, "m": 0}) == 0


def test_a_symbol_times_zero_needs_no_size() -> None:
    """Only the symbols that the value depends on must be bound; the error names one that is not."""
    n, m = symbol("n"), symbol("m")
    assert evaluate(n * m + n + 2, {"n": 0}) == 2
    with pytest.raises(KeyError, match="m"):
        evaluate(n * m + n + 2, {"n": 1})


@given(TREES, TREES)
def test_min_and_max_are_symmetric(a: Tree, b: Tree) -> None:
    """min and max do not depend on the order of operands, and min + max is the sum when one is
    known."""
    x, y = build(a), build(b)
    assert dim_min(x, y) == dim_min(y, x)
    assert dim_max(x, y) == dim_max(y, x)
    assert dim_min(x, dim_add(x, 1)) == x
    assert dim_max(x, dim_add(x, 1)) == dim_add(x, 1)


@given(TREES, TREES, POSITIVE)
def test_substitution_is_evaluation_in_steps(a: Tree, b: Tree, bindings: dict[str, int]) -> None:
    """Replacing s0 by an expression and evaluating is evaluating with s0's value."""
    inner = build(b)
    value = evaluate(inner, bindings)
    if value > 0:
        replaced = substitute(build(a), {"s0": inner})
        assert evaluate(replaced, bindings) == evaluate(build(a), {**bindings, "s0": value})


@given(TREES, POSITIVE, st.integers(1, 40))
def test_coefficient_is_the_slope(tree: Tree, bindings: dict[str, int], other: int) -> None:
    """Where an expression is linear in a symbol, its coefficient is the difference quotient."""
    dim = build(tree)
    slope = coefficient(dim, "s0")
    if slope is not None:
        assert "s0" not in symbols_of(slope)
        change = evaluate(dim, {**bindings, "s0": other}) - evaluate(dim, bindings)
        assert change == evaluate(slope, bindings) * (other - bindings["s0"])


@given(st.lists(TREES, max_size=4), POSITIVE)
def test_element_counts_multiply(trees: list[Tree], bindings: dict[str, int]) -> None:
    """dim_product is the product of the values; 1 for no dimension."""
    product = 1
    for tree in trees:
        product *= value_of(tree, bindings)
    assert evaluate(dim_product(tuple(map(build, trees))), bindings) == product


@given(TREES, TREES, SIZES)
def test_what_is_seen_of_sizes_is_true(tree: Tree, other: Tree, sizes: dict[str, int]) -> None:
    """Bounds, orders and signs hold for every size; a maximum without a ``max`` is still the
    maximum."""
    left, right = build(tree), build(other)
    one, two = evaluate(left, sizes), evaluate(right, sizes)
    bound = lower_bound(left)
    assert bound is None or bound <= one
    assert not at_most(left, right) or one <= two
    assert less(left, right) in (None, one < two)
    assert equal(left, right) in (None, one == two)
    assert sign(left) in (0, 1 if one >= 0 else -1)
    assert evaluate(maximum(left, right), sizes) == max(one, two)
    assert evaluate(minimum(left, right), sizes) == min(one, two)
    assert evaluate(maximum(left, 1), sizes) == max(one, 1)


@given(TREES, SIZES, st.integers(-40, -1))
def test_a_signed_symbol_may_be_negative(tree: Tree, sizes: dict[str, int], negative: int) -> None:
    """What is said to be at least 0 is so for negative values of the symbols that may have some."""
    dim = build(tree)
    assert (
        not is_nonnegative(dim, lambda name: name == "h")
        or evaluate(dim, {**sizes, "h": negative}) >= 0
    )


def test_signs_that_are_seen() -> None:
    """One case of each kind that must be seen, and its neighbour that must not."""
    s0, h = symbol("s0"), symbol("h")
    seen = [
        s0,
        s0 * h + 3,
        dim_max(s0 - 5, h),
        dim_min(s0, h),
        dim_mod(s0 - 5, 3),
        dim_floordiv(s0, h),
    ]
    unseen = [s0 - 1, s0 - h, dim_min(s0 - 5, h), dim_floordiv(s0 - 5, 3), -1 * s0]
    assert [lower_bound(dim) for dim in seen] == [0, 3, 0, 0, 0, 0]
    assert not any(map(is_nonnegative, unseen))
    assert not is_nonnegative(s0, lambda name: name == "s0")
    assert less(s0, s0 + 1) is True
    assert less(s0 + 1, s0) is False
    assert less(s0, h) is None


def test_a_bare_symbol_is_nothing_else() -> None:
    """Only the expression that is one symbol once is its name."""
    s0 = symbol("s0")
    assert bare_symbol(s0) == "s0"
    others = [3, 2 * s0, s0 * s0, s0 + 1, s0 + symbol("s1"), dim_floordiv(s0, 2)]
    assert [bare_symbol(dim) for dim in others] == [None] * len(others)


RADICES = st.lists(st.integers(1, 9) | st.sampled_from(NAMES), min_size=1, max_size=4)
NUMBERS = st.just("x") | TREES


def _digits(x: Dim, radices: list[Dim]) -> list[Dim]:
    """X in a mixed radix, the lowest digit first, each times what it counts; the last one is all
    that is left."""
    digits: list[Dim] = []
    place: Dim = 1
    for radix in radices:
        digits.append(place * dim_mod(dim_floordiv(x, place), radix))
        place = dim_mul(place, radix)
    return [*digits, place * dim_floordiv(x, place)]


@given(NUMBERS, RADICES, st.lists(st.integers(-2, 2), min_size=5), POSITIVE, st.integers(0, 9999))
def test_digits_together_keep_the_value(
    tree: Tree, radices: list[Tree], factors: list[int], sizes: dict[str, int], x: int
) -> None:
    """Whatever the digits are multiplied by, the sum of them has the same value, and no more calls;
    all of them, each once, are the number."""
    number, bindings = build(tree), {**sizes, "x": x}
    digits = _digits(number, list(map(build, radices)))
    total = sum((digit * factor for digit, factor in zip(digits, factors, strict=False)), 0)
    made = recombined(total)
    assert evaluate(made, bindings) == evaluate(total, bindings)
    assert format_dim(made).count("(") <= format_dim(total).count("(")
    if tree == "x":
        assert recombined(sum(digits, 3)) == number + 3


def test_neighbouring_digits_are_one() -> None:
    """Some of the upper digits, of the lower ones, and of those between; a factor that differs keeps
    digits apart."""
    x, a, b, c = map(symbol, ("x", "a", "b", "c"))
    low, middle, high, above = _digits(x, [a, b, c])
    assert recombined(low + middle) == dim_mod(x, a * b)
    assert recombined(2 * middle + 2 * high) == 2 * a * dim_mod(dim_floordiv(x, a), b * c)
    assert recombined(high + above) == a * b * dim_floordiv(x, a * b)
    assert recombined(low + middle + high + c * above) == dim_mod(x, a * b * c) + c * above
    assert recombined(low + high) == low + high
    assert recombined(2 * low + middle) == 2 * low + middle

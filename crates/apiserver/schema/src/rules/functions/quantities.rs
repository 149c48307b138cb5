//! `quantity("1Gi").isLessThan(quantity("2Gi"))`.

use cel::common::types::{CelBool, CelDouble, CelInt, CelString};
use cel::{DeclarationError, Env, ExecutionError, add_member_overload, add_overload};

use super::failure;
use super::opaque::opaque;
use crate::quantity::Quantity;

#[derive(Clone, Debug, PartialEq)]
struct Amount(Quantity);

opaque!(Amount, AMOUNT, "kubernetes.Quantity");

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    add_overload!(env, fn quantity: (CelString<'_>) -> Result<Amount>, name = "quantity")?;
    add_overload!(env, fn is_quantity: (CelString<'_>) -> CelBool, name = "isQuantity")?;
    add_member_overload!(env, fn sign: (Amount) -> CelInt)?;
    add_overload!(env, fn sign: (Amount) -> CelInt, name = "sign", id = "quantity_sign")?;
    add_member_overload!(env, fn is_greater_than: (Amount, Amount) -> CelBool)?;
    add_member_overload!(env, fn is_less_than: (Amount, Amount) -> CelBool)?;
    add_member_overload!(env, fn compare_to: (Amount, Amount) -> CelInt)?;
    add_member_overload!(env, fn as_approximate_float: (Amount) -> CelDouble)?;
    add_member_overload!(env, fn as_integer: (Amount) -> Result<CelInt>)?;
    add_member_overload!(env, fn is_integer: (Amount) -> CelBool)?;
    add_member_overload!(env, fn add: (Amount, Amount) -> Amount)?;
    add_member_overload!(env, fn add_integer: (Amount, CelInt) -> Amount, name = "add")?;
    add_member_overload!(env, fn sub: (Amount, Amount) -> Amount)?;
    add_member_overload!(env, fn sub_integer: (Amount, CelInt) -> Amount, name = "sub")?;
    Ok(())
}

fn quantity(text: &CelString<'_>) -> Result<Amount, ExecutionError> {
    Quantity::parse(text.inner()).map(Amount).map_err(failure)
}

fn is_quantity(text: &CelString<'_>) -> CelBool {
    Quantity::parse(text.inner()).is_ok().into()
}

fn sign(this: &Amount) -> CelInt {
    this.0.sign().into()
}

fn is_greater_than(this: &Amount, other: &Amount) -> CelBool {
    (this.0 > other.0).into()
}

fn is_less_than(this: &Amount, other: &Amount) -> CelBool {
    (this.0 < other.0).into()
}

fn compare_to(this: &Amount, other: &Amount) -> CelInt {
    (this.0.cmp(&other.0) as i64).into()
}

fn as_approximate_float(this: &Amount) -> CelDouble {
    this.0.approximate().into()
}

fn as_integer(this: &Amount) -> Result<CelInt, ExecutionError> {
    this.0.as_integer().map(CelInt::from).ok_or_else(|| failure("cannot convert value to integer"))
}

fn is_integer(this: &Amount) -> CelBool {
    this.0.as_integer().is_some().into()
}

fn add(this: &Amount, other: &Amount) -> Amount {
    Amount(this.0 + other.0)
}

fn add_integer(this: &Amount, other: &CelInt) -> Amount {
    Amount(this.0 + Quantity::from_integer(*other.inner()))
}

fn sub(this: &Amount, other: &Amount) -> Amount {
    Amount(this.0 - other.0)
}

fn sub_integer(this: &Amount, other: &CelInt) -> Amount {
    Amount(this.0 - Quantity::from_integer(*other.inner()))
}

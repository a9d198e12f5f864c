#!/bin/sh
# The action `validate-order`: refuses an order that cannot be fulfilled.
#
#   input   {"order_id":"A-17","amount":120.50}
#   output  {"order_id":"A-17","amount":120.50,"valid":true}
#
# Exit code 65 fails the step for good: trying again would not make the order any better.
set -eu
# A decimal point is a point everywhere.
export LC_ALL=C

refuse() {
    echo "$1" >&2
    exit 65
}

# Good enough for a flat object; a program in a larger language would parse it.
order=$(tr '\n' ' ')
order_id=$(printf '%s' "$order" | sed -n 's/.*"order_id" *: *"\([A-Za-z0-9-]*\)".*/\1/p')
amount=$(printf '%s' "$order" | sed -n 's/.*"amount" *: *\(-\{0,1\}[0-9][0-9.]*\).*/\1/p')

[ -n "$order_id" ] || refuse 'expected an "order_id" of letters, digits and dashes, but there is none'
[ -n "$amount" ] || refuse "expected order $order_id to have an \"amount\", but it is missing"
awk -v amount="$amount" 'BEGIN { exit !(amount > 0) }' ||
    refuse "expected order $order_id to cost something, but its amount is $amount"

printf '{"order_id":"%s","amount":%s,"valid":true}\n' "$order_id" "$amount"

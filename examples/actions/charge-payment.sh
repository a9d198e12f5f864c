#!/bin/sh
# The action `charge-payment`: charges an order, tax included, and keeps a receipt of it.
#
#   input   {"order_id":"A-17","amount":100.00,"card":"4242"}
#   output  {"order_id":"A-17","charged":119.00}
#
# An action runs at least once: its worker may die after the work and before the report. So the receipt
# is what decides. A second attempt finds it and charges nothing.
#
#   RECEIPTS        the folder of receipts [default: flotilla-receipts in the temporary folder]
#   CHARGE_SECONDS  how long the bank takes [default: 0]
#
# The bank of card 4000 is asleep whenever it is called for the first time.
set -eu
# A decimal point is a point everywhere.
export LC_ALL=C

order=$(tr '\n' ' ')
order_id=$(printf '%s' "$order" | sed -n 's/.*"order_id" *: *"\([A-Za-z0-9-]*\)".*/\1/p')
amount=$(printf '%s' "$order" | sed -n 's/.*"amount" *: *\([0-9][0-9.]*\).*/\1/p')
card=$(printf '%s' "$order" | sed -n 's/.*"card" *: *"\([0-9]*\)".*/\1/p')

if [ "$card" = 4000 ] && [ "${FLO_ATTEMPT:-1}" -le 1 ]; then
    # Neither 0 nor 65: the action's own retries try it again.
    echo "the bank of card 4000 did not answer" >&2
    exit 1
fi
sleep "${CHARGE_SECONDS:-0}"

receipts=${RECEIPTS:-${TMPDIR:-/tmp}/flotilla-receipts}
mkdir -p "$receipts"
draft=$receipts/.draft-$order_id-$$
awk -v order_id="$order_id" -v amount="$amount" \
    'BEGIN { printf "{\"order_id\":\"%s\",\"charged\":%.2f}\n", order_id, amount * 1.19 }' >"$draft"
# A link appears whole or not at all, and never over another one.
ln "$draft" "$receipts/$order_id" 2>/dev/null || echo "order $order_id was charged before" >&2
rm "$draft"
cat "$receipts/$order_id"

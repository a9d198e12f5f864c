#!/bin/sh
# The action `check-approval-needed`: sends expensive orders to a person.
#
#   input   {"order_id":"A-17","amount":2400.00}
#   output  {"approval_needed":true,"limit":500}
#
#   APPROVAL_LIMIT  an order above it needs an approval [default: 500]
#
# `success` means that no approval is needed. `failure` is an answer here, not an error, so the action sets
# it as the outcome instead of failing: the run follows the transition immediately, without a retry.
set -eu
# A decimal point is a point everywhere.
export LC_ALL=C

order=$(tr '\n' ' ')
amount=$(printf '%s' "$order" | sed -n 's/.*"amount" *: *\([0-9][0-9.]*\).*/\1/p')
limit=${APPROVAL_LIMIT:-500}

approval_needed=false
if awk -v amount="$amount" -v limit="$limit" 'BEGIN { exit !(amount > limit) }'; then
    approval_needed=true
    echo failure >"$FLO_OUTCOME_FILE"
fi
printf '{"approval_needed":%s,"limit":%s}\n' "$approval_needed" "$limit"

"""What the money rows must add up to."""

from billing.kinds import LEGS
from core.audit import Rule

# The legs that each kind may have, as SQL: the same table that the constraint is made of.
_LEGS = " OR ".join(
    f"(transfer.kind = '{kind.value}' AND transfer.debit = '{debit.value}' "
    f"AND transfer.credit = '{credit.value}')"
    for kind, pairs in LEGS.items()
    for debit, credit in pairs
)
# What the transfers of a charge did, a row per charge.
_SUMS = """
SELECT charge_id,
  SUM(CASE WHEN kind = 'charge' THEN 1 ELSE 0 END) AS charges,
  SUM(CASE WHEN kind = 'charge' THEN amount_micros ELSE 0 END) AS charged,
  SUM(CASE WHEN kind = 'settle' THEN amount_micros ELSE 0 END) AS settled,
  SUM(CASE WHEN kind = 'refund' THEN amount_micros ELSE 0 END) AS refunded,
  SUM(CASE WHEN kind = 'goodwill' THEN amount_micros ELSE 0 END) AS goodwill,
  SUM(CASE WHEN credit = 'clearing' THEN amount_micros ELSE 0 END)
    - SUM(CASE WHEN debit = 'clearing' THEN amount_micros ELSE 0 END) AS held
FROM billing_transfer WHERE charge_id IS NOT NULL GROUP BY charge_id
"""

RULES = [
    Rule(
        says="a charge belongs to a claim of its owner that was accepted",
        sql="""
        SELECT charge.claim_id, charge.owner_id FROM billing_charge AS charge
        LEFT JOIN tombstones_claim AS claim ON claim.id = charge.claim_id AND claim.owner_id = charge.owner_id
        WHERE claim.id IS NULL OR claim.reason = 'abandoned'
        """,
    ),
    Rule(
        says="a charge has exactly one charge transfer, of its amount",
        sql=f"""
        SELECT charge.claim_id, charge.amount_micros, sums.charges, sums.charged
        FROM billing_charge AS charge LEFT JOIN ({_SUMS}) AS sums ON sums.charge_id = charge.claim_id
        WHERE COALESCE(sums.charges, 0) <> 1 OR sums.charged <> charge.amount_micros
        """,
    ),
    Rule(
        says="a transfer about a charge names its owner",
        sql="""
        SELECT transfer.id, transfer.kind, transfer.charge_id, transfer.owner_id
        FROM billing_transfer AS transfer
        JOIN billing_charge AS charge ON charge.claim_id = transfer.charge_id
        WHERE transfer.kind IN ('charge', 'settle', 'refund', 'goodwill')
          AND (transfer.owner_id IS NULL OR transfer.owner_id <> charge.owner_id)
        """,
    ),
    Rule(
        says="a transfer joins the accounts of its kind and has a whole, positive amount",
        sql=f"""
        SELECT transfer.id, transfer.kind, transfer.debit, transfer.credit, transfer.amount_micros
        FROM billing_transfer AS transfer
        WHERE NOT ({_LEGS}) OR transfer.amount_micros < 1
          OR transfer.amount_micros <> CAST(transfer.amount_micros AS BIGINT)
          OR (transfer.kind IN ('charge', 'settle', 'refund', 'goodwill') AND transfer.charge_id IS NULL)
          OR (transfer.owner_id IS NULL AND 'owner' IN (transfer.debit, transfer.credit))
        """,
    ),
    Rule(
        says="a resolution divides its charge, and its transfers are exactly that",
        sql=f"""
        SELECT charge.claim_id, charge.amount_micros, resolution.outcome, resolution.settled_micros,
          resolution.returned_micros, sums.settled, sums.refunded
        FROM billing_charge AS charge
        LEFT JOIN billing_resolution AS resolution ON resolution.charge_id = charge.claim_id
        LEFT JOIN ({_SUMS}) AS sums ON sums.charge_id = charge.claim_id
        WHERE COALESCE(resolution.settled_micros, 0) <> COALESCE(sums.settled, 0)
          OR COALESCE(resolution.returned_micros, 0) <> COALESCE(sums.refunded, 0)
          OR resolution.settled_micros + resolution.returned_micros <> charge.amount_micros
          OR (resolution.outcome = 'refunded' AND resolution.settled_micros <> 0)
          OR (resolution.outcome = 'settled' AND resolution.settled_micros < 1)
        """,
    ),
    Rule(
        says="what is returned never exceeds the charge, and goodwill follows a settlement",
        sql=f"""
        SELECT charge.claim_id, charge.amount_micros, sums.refunded, sums.goodwill
        FROM billing_charge AS charge JOIN ({_SUMS}) AS sums ON sums.charge_id = charge.claim_id
        LEFT JOIN billing_resolution AS resolution ON resolution.charge_id = charge.claim_id
        WHERE sums.refunded + sums.goodwill > charge.amount_micros
          OR (sums.goodwill > 0 AND COALESCE(resolution.outcome, '') <> 'settled')
        """,
    ),
    Rule(
        says="clearing holds exactly each unresolved charge",
        sql=f"""
        SELECT charge.claim_id, charge.amount_micros, resolution.outcome, sums.held
        FROM billing_charge AS charge
        LEFT JOIN ({_SUMS}) AS sums ON sums.charge_id = charge.claim_id
        LEFT JOIN billing_resolution AS resolution ON resolution.charge_id = charge.claim_id
        WHERE COALESCE(sums.held, 0)
          <> CASE WHEN resolution.charge_id IS NULL THEN charge.amount_micros ELSE 0 END
        """,
    ),
    Rule(
        says="clearing in total equals the unresolved charges",
        sql="""
        SELECT totals.clearing, totals.unresolved FROM (SELECT
          (SELECT COALESCE(SUM(CASE WHEN credit = 'clearing' THEN amount_micros ELSE 0 END)
             - SUM(CASE WHEN debit = 'clearing' THEN amount_micros ELSE 0 END), 0)
           FROM billing_transfer) AS clearing,
          (SELECT COALESCE(SUM(charge.amount_micros), 0) FROM billing_charge AS charge
           LEFT JOIN billing_resolution AS resolution ON resolution.charge_id = charge.claim_id
           WHERE resolution.charge_id IS NULL) AS unresolved) AS totals
        WHERE totals.clearing <> totals.unresolved
        """,
    ),
    Rule(
        says="every balance is the sum of its owner's transfers and not negative",
        sql="""
        SELECT owner_id, SUM(stored) AS balance_micros, SUM(derived) AS sum_of_transfers FROM (
          SELECT owner_id, balance_micros AS stored, 0 AS derived FROM billing_account
          UNION ALL
          SELECT owner_id, 0, CASE WHEN credit = 'owner' THEN amount_micros
            WHEN debit = 'owner' THEN -amount_micros ELSE 0 END
          FROM billing_transfer WHERE owner_id IS NOT NULL
        ) AS sides GROUP BY owner_id HAVING SUM(stored) <> SUM(derived) OR SUM(stored) < 0
        """,
    ),
    Rule(
        says="nothing but its charge takes money from the owner for a task",
        sql="""
        SELECT transfer.id, transfer.kind, transfer.charge_id, transfer.owner_id
        FROM billing_transfer AS transfer
        WHERE transfer.charge_id IS NOT NULL AND transfer.debit = 'owner' AND transfer.kind <> 'charge'
        """,
    ),
    Rule(
        says="the amount charged is unit price times quantity, at the frozen price, within max_price",
        sql="""
        SELECT charge.claim_id, charge.amount_micros, charge.unit_price_micros, charge.quantity,
          charge.max_price_micros
        FROM billing_charge AS charge
        JOIN billing_priceversion AS version ON version.id = charge.price_version_id
        WHERE charge.amount_micros <> charge.unit_price_micros * charge.quantity
          OR charge.amount_micros > charge.max_price_micros OR charge.amount_micros < 1
          OR charge.unit_price_micros <> version.unit_price_micros OR charge.model <> version.model
        """,
    ),
]

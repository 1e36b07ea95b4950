"""The status that every experiment must have, at every size."""

STATUSES = {
    "holds": """
        W-fn1 W-GA W-F1 W-N W-F2 W-F3 W-fn4 W-F4 W-F8 W-F9 W-L5 W-L7 W-L8 W-T9 W-L13
        M-F1 M-T1 M-squared M-T2 M-F2 M-layers M-L3 M-T4 M-C5 M-T6 M-T7 M-l1 M-F3 M-area M-open
        M-F4 M-I M-L10 M-L11 M-L12 M-F6 M-F7 M-F9
        L-T1 L-T2 L-sharp L-F1 L-F2 L-table L-F3a L-F3b L-sweep L-no-decay L-clock L-forecast
        N-F1 N-F2 N-F3 N-F-mirage N-T31 N-F-dominance N-T34 N-F-dominance-nuclear N-F-data
        N-F-depth N-NTK-t2 N-F-alg N-F-ts
        beyond-clock beyond-saddles beyond-momentum beyond-clock-depth beyond-apriori
        beyond-balanced-linear beyond-greedy-rank beyond-imbalance beyond-margins beyond-muon
        beyond-adam-batch beyond-sgd-grokking
        watch-forecast watch-regime
    """,
    "holds, proof corrected": """
        W-K W-T1 W-T2 W-T3 W-C W-L6 W-C10 W-L11 W-L12
    """,
    "holds as corrected": """
        W-A W-R W-T4 W-F5 W-F6ab W-F6c W-F6d W-F7
        M-depth M-num M-F5 M-L13 M-F8
        L-A3
        N-LU N-GWU N-T21 N-PL N-T33 N-F-scaling N-T35 N-norm N-F-scaling-nuclear N-NTK N-NTK-KKT
    """,
}
EXPECTED = {id: status for status, ids in STATUSES.items() for id in ids.split()}

# too long for the default tests even at the size "tiny"; the tests of their papers test the checks
SLOW = {"W-F6d", "W-F8", "L-F3b", "N-F1", "N-F3", "N-F-alg"}

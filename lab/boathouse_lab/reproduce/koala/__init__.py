"""Koala's evaluation, claim by claim.

B. Ghiţ, N. Yigitbasi, D. Epema, "Resource Management for Dynamic MapReduce Clusters in Multicluster
Systems", MTAGS 2012.

| module | of the paper |
|---|---|
| `setting` | V: DAS-4, the programs, the jobs of Table II, and what is assumed of them |
| `case` | one simulation |
| `worked` | VI.B: the worked example |
| `usage` | VI.A: Figure 3 |
| `single` | VI.B: Figures 4 and 5a |
| `stream`, `stream_rows` | VI.C: Figure 5b, and what it depends on |
| `apart` | III: isolation |
| `levels` | IV.C: two levels |
"""

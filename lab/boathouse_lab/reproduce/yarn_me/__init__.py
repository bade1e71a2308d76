"""YARN-ME's evaluation, claim by claim.

C. Iorgulescu, F. Dinu, A. Raza, W. Ul Hassan, W. Zwaenepoel, "Don't cry over spilled records: Memory elasticity of
data-parallel applications and its application to cluster scheduling", USENIX ATC 2017.

| module | of the paper |
|---|---|
| `models` | section 2: the models' accuracy (Figure 1c), disk contention (Figure 2c), the example of Figure 3 |
| `cluster` | section 5: Table 1 on 50 nodes (Figures 4 and 5) |
| `sweep` | section 6.2: Table 2, weak scaling, Meganode (Figure 6) |
| `wrong` | section 6.2: mis-estimation (Figure 7) |
| `peers` | agreement with DSS, the authors' simulator; baselines with and without reservations |
"""

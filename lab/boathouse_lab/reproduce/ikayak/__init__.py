"""iKayak's evaluation, claim by claim.

D. Cheng, X. Zhou, P. Lama, J. Wu, C. Jiang, "Cross-platform Resource Scheduling for Spark and MapReduce on YARN".

| module | of the paper |
|---|---|
| `setting` | 4.2, 4.3: the testbed and the mix of MSD with Spark |
| `variants` | the schedulers that are compared |
| `main` | 5.1: iKayak against YARN-client and YARN-cluster (Figure 7) |
| `placing` | 5.2, 5.3: placement alone (Figure 8), wrong predictions (Figure 9b) |
| `predicting`, `remaining` | 5.3: remaining times of reducers (Figure 9a) |
| `adjusting` | 5.4, 5.6: suspension (Figures 10, 12, 13a) |
| `localising`, `alone` | 5.5, 5.6: locality (Figures 6, 11, 13b) |
| `overhead` | 5.7 |
"""

"""The ILA paper reproduced in the simulator: each claim as a row, each figure that has numbers as a picture.

X. Bu, J. Rao, C.-Z. Xu, "Interference and Locality-Aware Task Scheduling for MapReduce Applications in Virtual
Clusters", HPDC 2013.

* `programs`, `setting`: the ten applications and the workloads of Tables 3 and 4 and of Figures 9, 10 and 12.
* `case`: one simulation and what is measured in it.
* `stream`: Figures 5 to 8. `benefits`: Figures 9 and 10. `thresholds`: Figure 12. `modelling`, `models`: Table 5 and
  Figure 11. `exact`: equations 5 and 6. `placing`: tasks scheduled a second. `study`: all of them.
* `training`: what ILA begins with. `oracle`: what no model could do better. `sweep`: what claims depend on.
"""

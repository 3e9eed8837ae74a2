"""WEIR, CAKE and FQ-CoDel where nobody chose the testbed."""
